"""The wait-for picture: same bytes on every run, every edge an arrow, readable without colour or eyes."""

import base64
import re
import xml.etree.ElementTree as ElementTree

import pytest

from widgets.wait_for import WaitFor

EDGES = [(0, 2, "all_reduce, line 4"), (1, 2, "all_reduce, line 4"), (3, 2, "all_reduce, line 4")]


def test_every_edge_is_an_arrow_with_its_words():
    root = ElementTree.fromstring(WaitFor(EDGES, 4).svg())
    titles = [node.text for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[1:] == [f"rank {rank} waits for rank 2: all_reduce, line 4" for rank in (0, 1, 3)]
    numbers = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert numbers == ["0", "1", "2", "3"]
    dashed = [node for node in root.iter("{http://www.w3.org/2000/svg}circle") if node.get("stroke-dasharray")]
    assert len(dashed) == 1  # rank 2, who is not coming


def test_the_saved_form_is_stable_and_survives_a_sanitiser():
    html = WaitFor(EDGES, 4)._repr_html_()
    assert html == WaitFor(EDGES, 4)._repr_html_()
    assert 'alt="rank 0 waits for rank 2; rank 1 waits for rank 2; rank 3 waits for rank 2"' in html
    (data,) = re.findall(r"base64,([^\"]+)", html)
    assert base64.b64decode(data).startswith(b"<svg")
    assert repr(WaitFor(EDGES, 4)) == "WaitFor(ranks=4, waiting=3)"


def test_what_is_written_on_an_arrow_is_text():
    svg = WaitFor([(0, 1, "<script>alert(1)</script>")], 2).svg()
    assert "<script>" not in svg


def test_many_ranks_are_told_in_words_and_wrong_ones_refused():
    assert WaitFor([(0, 63, "recv, line 1")], 64)._repr_html_() == "<span>rank 0 waits for rank 63</span>"
    with pytest.raises(ValueError, match="rank 4: there are ranks 0 to 3"):
        WaitFor([(0, 4, "")], 4)
