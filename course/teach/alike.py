"""Which functions of a class are alike: the same tree of Python once names, comments and layout are put aside.

Short exercises have few good answers, so that two are alike proves nothing; it says where to look. What many have in
common is told in one sentence, and what is our own solution is said to be.

Left out: who wrote it first.
"""

import ast
from collections import defaultdict
from difflib import SequenceMatcher
from itertools import combinations

from course.exercises import TASKS
from course.teach import homework

NEARLY = 0.9
"""From this share of equal nodes on two functions count as nearly the same ..."""

SHORT = 60
"""... if the shorter one has so many nodes: of few nodes most are equal anyway."""


def nodes(text: str) -> tuple[str, ...]:
    """The nodes of the functions in a text, in order; names by the order in which they first appear. () if it cannot be
    read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    places: dict[str, str] = {}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.alias):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""  # a docstring
        name = next((getattr(node, field) for field in ("id", "arg", "name") if hasattr(node, field)), None)
        place = places.setdefault(name, str(len(places))) if isinstance(name, str) else ""
        said = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else place
        if not (isinstance(node, ast.Expr | ast.Constant) and said == "" or isinstance(node, ast.expr_context)):
            found.append(f"{type(node).__name__} {said!r}")
    return tuple(found)


def sentences(texts: dict[str, dict[str, str]]) -> list[str]:
    """About the functions in `texts`, by student and exercise: "shift: anna and ben have the same function"."""
    by_exercise: dict[str, dict[str, str]] = defaultdict(dict)
    for who, functions in texts.items():
        for name, text in functions.items():
            by_exercise[name][who] = text
    return [line for name, functions in by_exercise.items() for line in _of_one(name, functions)]


def _of_one(name: str, functions: dict[str, str]) -> list[str]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for who, text in functions.items():
        groups[nodes(text) or (text,)].append(who)
    ours = nodes(homework.solution(TASKS[name])) if name in TASKS else ()
    lines = []
    for tree, people in groups.items():
        if tree == ours:
            lines.append(f"{name}: {_named(people)} handed in our solution, names and layout aside")
        elif len(people) > 1:
            exactly = len({functions[who] for who in people}) == 1
            how = "letter for letter" if exactly else "names and layout aside"
            lines.append(f"{name}: {_named(people)} handed in the same function, {how}")
    for (one, some), (other, more) in combinations(groups.items(), 2):
        if min(len(one), len(other)) >= SHORT and ours not in (one, other):
            matcher = SequenceMatcher(None, one, other, autojunk=False)
            if matcher.quick_ratio() >= NEARLY and (share := matcher.ratio()) >= NEARLY:
                lines.append(f"{name}: {_named(some)} and {_named(more)} are alike in {share:.0%} of their nodes")
    return lines


def _named(people: list[str]) -> str:
    return people[0] if len(people) == 1 else f"{', '.join(people[:-1])} and {people[-1]}"
