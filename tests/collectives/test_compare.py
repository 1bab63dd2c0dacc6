"""compare: tables and figures say what cost says, the same every time."""

import subprocess
import sys

import numpy as np
import pytest

from collectives import CATALOGUE, Network, ScheduleError, algorithms, all_reduce, build, compare, presets
from collectives.compare import CHUNKS
from collectives.units import duration, size

NETWORK = Network(alpha=1e-5, beta=1e-9)


def test_the_numbers_are_those_of_cost():
    found = compare("all_reduce", 8, [1e3, 1e6], NETWORK)
    for name, seconds in found.seconds.items():
        for nbytes, told in zip((1e3, 1e6), seconds, strict=True):
            ways = [{"chunks": chunks} for chunks in CHUNKS] if name in ("pipelined_tree", "double_tree") else [{}]
            costs = [getattr(all_reduce, name)(8, **way).cost(nbytes=nbytes, network=NETWORK).seconds for way in ways]
            assert told == pytest.approx(min(costs))


def test_the_crossover_of_recursive_doubling_and_halving_doubling_is_where_algebra_puts_it():
    """lg p (a + n b) = 2 lg p a + 2 (p-1)/p n b: for p = 8, n = 3 a / (b (3 - 14/8))."""
    found = compare("all_reduce", 8, np.logspace(3, 8, 30), NETWORK)
    first = found.crossovers[0]
    assert (first.before, first.after) == ("recursive_doubling", "halving_doubling")
    assert first.nbytes == pytest.approx(3 * 1e-5 / (1e-9 * (3 - 14 / 8)), rel=1e-6)
    assert found.best[0] == "recursive_doubling" and found.best[-1] == "halving_doubling"


TABLE = """\
all_gather, 6 ranks, Network(alpha=1e-05, beta=1e-09, gamma=0.0)
                        1 kB      1 MB
ring                50.8 us    883 us
bidirectional_ring  50.8 us    883 us
bruck               30.8 us*   863 us*
pat                 30.8 us    863 us
gather_broadcast    63.8 us   3.89 ms
* fastest. Fastest: bruck. Not for this network or number of ranks: recursive_doubling."""


def test_the_table(monkeypatch):
    names = ("ring", "bidirectional_ring", "recursive_doubling", "bruck", "pat", "gather_broadcast")
    monkeypatch.setitem(CATALOGUE, "all_gather", {name: CATALOGUE["all_gather"][name] for name in names})
    found = compare("all_gather", 6, [1e3, 1e6], NETWORK, algorithms=names)
    assert repr(found) == TABLE
    assert repr(found) == repr(compare("all_gather", 6, [1e6, 1e3], NETWORK, algorithms=names[::-1]))
    html = found._repr_html_()
    assert html == found._repr_html_() and html.count("<tr>") == 6 and "<b>30.8 us</b>" in html
    assert "recursive_doubling needs a power of two" in found.skipped["recursive_doubling"]


def test_four_are_shown_unless_one_says_which():
    """The winners, and those that lose least; the verdict is about all."""
    found = compare("all_reduce", 8, [1e2, 1e5, 1e9], NETWORK)
    assert found.shown == ["recursive_doubling", "halving_doubling", "halving_doubling_far_first", "swing"]
    assert set(found.best) <= set(found.shown) and len(found.seconds) > 10
    assert f"Not shown: {len(found.seconds) - 4} that are slower." in repr(found)
    assert repr(found).count("\n") == 2 + 4 and found._repr_html_().count("<tr>") == 1 + 4
    asked = compare("all_reduce", 8, [1e2, 1e5, 1e9], NETWORK, algorithms=["ring", "tree"])
    assert list(asked.seconds) == asked.shown == ["ring", "tree"] and asked.best == ["tree", "ring", "ring"]
    assert asked.seconds["ring"].tolist() == found.seconds["ring"].tolist() and "Not shown" not in repr(asked)


def test_many_sizes_make_a_table_of_eight():
    found = compare("broadcast", 4, np.logspace(3, 9, 100), NETWORK)
    assert repr(found).splitlines()[1].split() == [
        "1", "kB", "7.05", "kB", "49.8", "kB", "351", "kB", "2.85", "MB", "20.1", "MB", "142", "MB", "1", "GB",
    ]  # fmt: skip


def test_hierarchical_takes_part_where_there_are_machines():
    assert "hierarchical" in compare("all_reduce", 16, [1e6], presets.dgx_h100()).seconds
    assert "hierarchical" in compare("all_reduce", 16, [1e6], NETWORK).skipped
    assert "hierarchical" in compare("all_reduce", 8, [1e6], presets.dgx_h100()).skipped  # they fit in one machine


def test_a_table_needs_no_plotly():
    used = "import sys, collectives as c; c.compare('scatter', 4, [1], c.Network(1, 1))"
    code = f"{used}; assert 'plotly' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_of_the_catalogue():
    assert list(algorithms("scatter")) == ["flat", "binomial"]
    assert build("all_reduce", "hierarchical", 8, local=2).counts(nbytes=8).steps == 2 * 1 + 2 * 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: algorithms("allreduce"), "no collective is called 'allreduce'; there are broadcast, scatter, "),
        (lambda: build("scatter", "ring", 4), "scatter has no algorithm 'ring'; it has flat, binomial"),
        (
            lambda: build("all_reduce", "hierarchical", 8),
            "all_reduce.hierarchical needs several machines of several ranks",
        ),
        (
            lambda: compare("scatter", 4, [1], NETWORK, algorithms=["flat", "ring"]),
            "scatter has no algorithm 'ring'; it has flat, binomial",
        ),
        (
            lambda: compare("scatter", 4, [1], NETWORK, algorithms="flat"),
            "algorithms is a list of names, for example ['flat', 'binomial']",
        ),
        (
            lambda: compare("all_reduce", 4, [1], NETWORK, algorithms=["hierarchical"]),
            "all_reduce.hierarchical needs several machines of several ranks each",
        ),
        (lambda: compare("scatter", 1, [1], NETWORK), "compare needs at least 2 ranks, got 1"),
        (lambda: compare("scatter", 4, [], NETWORK), "compare needs sizes in bytes, all above 0, for example "),
        (lambda: compare("scatter", 4, [0], NETWORK), "compare needs sizes in bytes, all above 0, for example "),
        (lambda: compare("scatter", 64, [1], presets.dgx_h100()), "4 x DGX H100 has 32 ranks, and 64 are needed"),
    ],
)
def test_bad_input_is_one_clear_sentence(call, sentence):
    with pytest.raises(ScheduleError) as error:
        call()
    assert str(error.value).startswith(sentence)


def test_sizes_and_durations_have_three_digits():
    assert [size(n) for n in (1, 999, 1000, 1500, 999_600, 64e6, 2.5e9)] == [
        "1 B",
        "999 B",
        "1 kB",
        "1.5 kB",
        "1 MB",
        "64 MB",
        "2.5 GB",
    ]
    assert [duration(s) for s in (2e-9, 1.2345e-6, 0.0015, 1, 130)] == ["2 ns", "1.23 us", "1.5 ms", "1 s", "130 s"]
