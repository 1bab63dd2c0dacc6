"""The picture of the model of chapter 0: a line through what each rank holds, and whether it is one line."""

import pytest

from course.drift import drift


@pytest.mark.parametrize(
    "lines, name", [([[0, 1], [-2, 3]], "drift(2 ranks, 2 lines)"), ([[-0.6, 2]] * 2, "drift(one line for all ranks)")]
)
def test_every_rank_has_its_line_and_its_points(lines, name):
    figure = drift(lines, [[0.0, 1.0], [1.0, 2.0]])
    curve, first, seen, second, _ = figure.data
    assert repr(figure) == name and curve.y[10] == 1
    assert first.y == tuple(lines[0][0] + x * lines[0][1] for x in (0, 2)) and second.y[0] == lines[1][0]
    assert seen.x == (0, 1) and seen.y == (0, 1)
    assert f"rank 1: {lines[1][0]:.2f} + {lines[1][1]:.2f} x" in figure._repr_mimebundle_()["text/html"]
