"""The clause that titles have about a collective is about what `spec.goal` promises."""

import numpy as np
import pytest

from collectives import CATALOGUE, build
from collectives.spec import GETS

RANKS = 4


@pytest.mark.parametrize("collective", GETS)
def test_it_says_who_gets_what_of_whom(collective):
    said = GETS[collective].format(ranks=RANKS)
    plan = build(collective, next(iter(CATALOGUE[collective])), RANKS)
    goal = plan.goal()[plan.result]
    gets = [[cell for cell in row if cell is not None] for row in goal]
    assert said.startswith("the root ") == (not all(gets)) and any(gets)
    alike = all(np.array_equal(row, goal[0]) for row in goal)
    assert said.startswith("every rank ") == alike, "each has the same"
    whose = {rank for row in gets for cell in row for rank in cell.contributors}
    assert ("root's data" in said) == (whose == {plan.root}) and (f"all {RANKS}" in said) == (len(whose) == RANKS)
    sums = any(len(cell.contributors) > 1 for row in gets for cell in row)
    assert any(word in said for word in ("sum", "news")) == sums
    assert ("its own chunk" in said) == (collective != "all_to_all" and all(gets) and not alike)


def test_only_patterns_of_messages_promise_nothing():
    assert set(CATALOGUE) - set(GETS) == {"send_recv"}
