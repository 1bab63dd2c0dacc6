"""The line through measured messages: it gives back what they were made of."""

from course.fit import fit

SIZES = [4, 40_000, 400_000, 1_600_000]


def test_the_line_has_the_alpha_and_the_beta_of_its_network():
    figure = fit(SIZES, {"slow": [0.02 + n / 4e6 for n in SIZES], "fast": [1e-3 + n / 50e6 for n in SIZES]})
    said = ["slow: alpha 20 ms, 4 MB/s, bends at 80 kB", "fast: alpha 1 ms, 50 MB/s, bends at 50 kB"]
    assert all(sentence in figure.fallback() for sentence in said)
    points, line = figure.data[2:]
    assert line.name == said[1] and tuple(points.x) == tuple(SIZES)
    assert abs(line.y[0] - 1e-3) < 1e-6 and abs(line.y[-1] - 0.033) < 1e-6
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_a_miss_of_a_tenth_counts_the_same_for_short_and_for_long():
    """The longest message was late by a tenth: an unweighted line would give the shortest ones a latency below 0."""
    times = [1e-4 + n / 50e6 for n in SIZES]
    figure = fit(SIZES, {"late": [*times[:-1], 1.1 * times[-1]]})
    assert "alpha 99.7 us" in figure.data[1].name
