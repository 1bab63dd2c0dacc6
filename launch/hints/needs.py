"""What needs a newer torch than the oldest that Ringside runs on, and the rule that says so below the error.

Left out: JAX for chapter 16, which ../load_hint.py names; functions that older torches have under another name
(rank/patches.py gives them the new one).
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from launch.hints.place import Place


class Need(NamedTuple):
    words: str  # in the error of an older torch
    what: str
    first: tuple[int, int]  # the first torch that has it

    def unmet(self, version: str) -> str:
        """A sentence for a torch that is too old; "" for one that has it."""
        if tuple(map(int, re.findall(r"\d+", version)[:2])) >= self.first:
            return ""
        return f"{self.what} needs torch {self.first[0]}.{self.first[1]} or newer; this is torch {version}"


NEEDS = (
    Need("gloo does not support alltoall", "dist.all_to_all on gloo, unlike dist.all_to_all_single,", (2, 13)),
    Need("no attribute '_prepare_schedule_with_comms'", "a pipeline schedule of your own", (2, 9)),
    Need("unexpected keyword argument 'sort_ranks'", "dist.new_group(..., sort_ranks=False)", (2, 12)),
)


def newer_torch(error, _: Place) -> str:
    """The call came with a later torch."""
    met = [need for need in NEEDS if need.words in str(error)]
    return met[0].unmet(sys.modules["torch"].__version__) if met else ""


RULES = (newer_torch,)
