"""The saved chapters: one normal form, nothing in them that differs between machines or runs. nbval runs them."""

import re

import nbformat
import pytest

from course.chapters import COMPILER, LATE_IMPORTS, name_of, notebooks
from course.refresh import EXAMPLE, MEASURED, as_text, execute, normalise

CHAPTERS = notebooks()
PICTURE = re.compile(
    r"(Butterfly|Memory|MemoryRun|Mesh|Player|Race|SlotGrid|Square|Timeline|Tokens|TopologyMap|Zoo|cost_explorer)\("
)
PRIVATE = {
    "a memory address": re.compile(r"\b0x[0-9a-f]{6,}\b"),
    "a path of one machine": re.compile(r"/(home|root|tmp|work|Users|mnt|var)/"),
    "a time stamp": re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d"),
    "a process id": re.compile(r"\bpid[ =]\d+"),
}


COMPILED = re.compile(
    r"torch\.(optim|compile)\b|DistributedDataParallel"
    r"|\b(fsdp|distributed\.tensor|distributed\.pipelining|_functional_collectives)\b|course\.orders\b"
)


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return request.param


def test_there_are_chapters():
    assert CHAPTERS


def test_chapter_is_in_normal_form(chapter):
    notebook = nbformat.read(chapter, as_version=4)
    nbformat.validate(notebook)
    assert as_text(normalise(notebook)) == chapter.read_text(encoding="utf-8"), "run `make refresh`"


def test_what_a_cell_has_measured_stands_there_as_an_example():
    """The note is added once, however often the chapter is normalised; a cell without output gets none."""
    measured = nbformat.v4.new_code_cell("1", metadata={"tags": [MEASURED]})
    measured.outputs = [nbformat.v4.new_output("stream", text="3 ms\n")]
    quiet = nbformat.v4.new_code_cell("2", metadata={"tags": [MEASURED]})
    plain = nbformat.v4.new_code_cell("3", outputs=measured.outputs)
    notebook = normalise(normalise(nbformat.v4.new_notebook(cells=[measured, quiet, plain])))
    shown = ["".join(output.text for output in cell.outputs) for cell in notebook.cells]
    assert shown == [f"{EXAMPLE}3 ms\n", "", "3 ms\n"]


SHOWN = """from types import SimpleNamespace
from time import perf_counter
from collectives.timed import Timed
from widgets import Timeline
now = perf_counter()
Timeline(SimpleNamespace(ranks=1, events=[Timed(0, "recv", 1, 4, 1, "", None, 0.0, now, None, None, None)]))"""


def test_a_timeline_is_an_example_from_its_first_refresh_on():
    """Its picture has measured times, so the cell is tagged, and the next run keeps the picture."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SHOWN), nbformat.v4.new_code_cell("1")])
    execute(notebook)
    first = as_text(normalise(notebook))
    assert [cell.metadata.get("tags") for cell in notebook.cells] == [[MEASURED], None]
    assert notebook.cells[0].outputs[0].text == EXAMPLE and "<img" in notebook.cells[0].outputs[1].data["text/html"]
    execute(notebook)
    assert as_text(normalise(notebook)) == first


def test_chapter_holds_nothing_private(chapter):
    for cell in nbformat.read(chapter, as_version=4).cells:
        text = str(cell.get("outputs", ""))
        for what, pattern in PRIVATE.items():
            found = pattern.search(text)
            assert not found, f"{cell.id} holds {what}: {found.group()}"


def test_chapter_was_run_from_top_to_bottom(chapter):
    code = [cell for cell in nbformat.read(chapter, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def test_what_ranks_import_late_is_known_ahead(chapter):
    """If ranks make torch import its compiler, their agent is told to import it once for all of them."""
    cells = [cell.source for cell in nbformat.read(chapter, as_version=4).cells if cell.source.startswith("%%ranks")]
    needed = any(COMPILED.search(source) for source in cells)
    assert needed == (LATE_IMPORTS.get(name_of(chapter.stem)) == COMPILER)


def test_links_lead_somewhere(chapter):
    for cell in nbformat.read(chapter, as_version=4).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", cell.source):
                assert target.startswith("https://") or (chapter.parent / target).exists(), f"{cell.id}: {target}"


def test_cells_are_short(chapter):
    """Median at most 3 lines of code, none over 30: a longer cell does not fit a projected slide."""
    lengths = sorted(
        len(cell.source.splitlines()) for cell in nbformat.read(chapter, as_version=4).cells if cell.cell_type == "code"
    )
    assert lengths[len(lengths) // 2] <= 3 and lengths[-1] <= 30


def test_every_picture_is_asked_about_first(chapter):
    """There is a question between two pictures: a picture seen without a guess is soon forgotten."""
    words = ""
    for cell in nbformat.read(chapter, as_version=4).cells:
        if cell.cell_type == "markdown":
            words += cell.source
        elif re.search(r"\bask\(", cell.source):
            words = "?"
        elif any(PICTURE.match(output.get("data", {}).get("text/plain", "")) for output in cell.outputs):
            assert "?" in words or "Predict" in words, f"{cell.id} shows a picture that nobody was asked about"
            words = ""


def test_every_chapter_links_back_and_forth(chapter):
    number = CHAPTERS.index(chapter)
    text = "".join(c.source for c in nbformat.read(chapter, as_version=4).cells if c.cell_type == "markdown")
    for neighbour in {CHAPTERS[max(number - 1, 0)], CHAPTERS[min(number + 1, len(CHAPTERS) - 1)]} - {chapter}:
        assert f"]({neighbour.name})" in text, f"no link to {neighbour.name}"
