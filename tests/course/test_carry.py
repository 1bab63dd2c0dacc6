"""What travels with a student's function, and what is refused."""

import linecache
import types

import pytest

from course.carry import CannotCarry, carry, has_blank


def namespace(source: str) -> dict:
    """The source executed as a notebook cell would be: its functions have a source to find."""
    name = f"<cell {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space = {"__name__": "__main__", "rank": 0, "dist": types.ModuleType("torch.distributed")}
    exec(compile(source, name, "exec"), space)
    return space


def carried(source: str, name: str):
    """The function, defined anew from its carried source in an empty namespace."""
    space = {"rank": 7}
    exec(carry(name, namespace(source)), space)
    return space[name]


def test_helpers_imports_and_constants_travel():
    f = carried(
        "import math\nfrom itertools import chain as link\nSCALE = (2, 3)\n\ndef inner(x):\n    return x * SCALE[1]\n\n"
        "def f(x):\n    return math.floor(sum(link([inner(x)], [rank])))\n",
        "f",
    )
    assert f(5) == 22


def test_mutual_recursion_travels():
    f = carried(
        "def even(n):\n    return n == 0 or odd(n - 1)\n\ndef odd(n):\n    return n != 0 and even(n - 1)\n", "even"
    )
    assert f(10) and not f(7)


def test_a_class_travels():
    box = "class Box:\n    def size(self):\n        return WIDTH\n"
    assert carried(f"WIDTH = 4\n{box}\ndef f():\n    return Box().size()\n", "f")() == 4


def test_a_local_variable_may_bear_the_name_of_another_cells_tensor():
    f = carried("spare = object()\n\ndef f(x):\n    spare = x + 1\n    return [spare for _ in (1, 2)]\n", "f")
    assert f(1) == [2, 2]


def test_a_value_without_text_is_refused():
    with pytest.raises(CannotCarry, match="f uses 'table', a object from another cell"):
        carry("f", namespace("table = object()\n\ndef f(x):\n    return table\n"))


def test_what_is_no_function_is_refused():
    with pytest.raises(CannotCarry, match="no function 'g' yet"):
        carry("g", namespace("g = 3\n"))


@pytest.mark.parametrize(
    "source, line",
    [
        ("def f(x):\n    ...\n", 2),
        ("def f(x):\n    x[...] += 1\n", None),
        ("def f(x):\n    y = x[..., 0]\n    x[k] = ...\n", 3),
        ("def f(x):\n    chunks[...] += 1\n", None),
        ("def f(x):\n    return x\n", None),
    ],
)
def test_a_blank_is_found(source, line):
    assert has_blank(source) == line
