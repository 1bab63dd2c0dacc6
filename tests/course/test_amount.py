"""Numbers as students write them, and what is none."""

import pytest

from course.teach.amount import amount

WRITTEN = {
    "0": 0,
    "6 N": 6,
    "6N": 6,
    "3/4 N": 0.75,
    "2(p-1)": 6,
    "2*(p - 1)": 6,
    "2(p-1)/p N": 1.5,
    "p(p - 1)": 12,
    "2p": 8,
    "p^2": 16,
    "p**2": 16,
    "log2(p)": 2,
    "2 log2 p": 4,
    "ceil(log2(p + 1))": 3,
    "12 messages": 12,
    "50 %": 0.5,
    "75%N": 0.75,
    "75 percent of N": 0.75,
    "N": 1,
    "3 * N": 3,
    "N/4": 0.25,
    "N - N/4": 0.75,
    "N/4*3": 0.75,
    "six": 6,
    "Twelve messages": 12,
    "zero": 0,
    "half": 0.5,
    "a quarter of N": 0.25,
    "three quarters": 0.75,
    "40 thousand": 40e3,
    "1.5 million": 1.5e6,
    "1,000": 1000,
    "1,5": 1.5,
    "1e6": 1e6,
    "-3": -3,
}


@pytest.mark.parametrize("said", WRITTEN)
def test_a_number_is_read_as_it_is_written(said):
    assert amount(said, p=4) == WRITTEN[said]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "many",
        "2(p",
        "6 7",
        "6 or 7",
        "six seven",
        "two and a half",
        "np",
        "1/0",
        "2**1000000",
        "(((((9**64)**64)**64)**64)**64)**64",
        "1e999999999",
        "(0-2)^(1/2)",
        "ceil((0-2)^(1/2))",
        "(" * 5000,
        "nan",
        None,
        [6],
        float("inf"),
    ],
)
def test_what_is_no_number_is_none(said):
    assert amount(said, p=4) is None


def test_numbers_of_every_kind_count():
    numpy = pytest.importorskip("numpy")
    assert amount(6) == amount(6.0) == amount(numpy.int64(6)) == amount(numpy.float32(6)) == 6


def test_a_formula_needs_its_p():
    assert amount("2(p - 1)") is None and amount("6 N") == 6
