"""What travels with a student's function, and what is refused."""

import pytest
import torch

from course.judge.carry import CannotCarry, blanks, carry, is_stub
from tests.course.cells import executed


def carried(source: str, name: str):
    """The function, defined anew from its carried source in an empty namespace."""
    space = {"rank": 7, "torch": torch}
    exec(carry(name, executed(source)), space)
    return space[name]


def test_helpers_imports_and_constants_travel():
    f = carried(
        "import math\nfrom itertools import chain as link\nSCALE = (2, 3)\n\ndef inner(x):\n    return x * SCALE[1]\n\n"
        "def f(x):\n    return math.floor(sum(link([inner(x)], [rank])))\n",
        "f",
    )
    assert f(5) == 22


@pytest.mark.parametrize("name", ["f", "inner"])
def test_a_function_that_is_cached_travels(name):
    source = (
        "import functools\n\n@functools.cache\ndef inner(x=2):\n    return x * rank\n\ndef f():\n    return inner()\n"
    )
    assert carried(source, name)() == 14


def test_mutual_recursion_travels():
    f = carried(
        "def even(n):\n    return n == 0 or odd(n - 1)\n\ndef odd(n):\n    return n != 0 and even(n - 1)\n", "even"
    )
    assert f(10) and not f(7)


def test_a_class_travels():
    box = "class Box:\n    def size(self):\n        return WIDTH\n"
    assert carried(f"WIDTH = 4\n{box}\ndef f():\n    return Box().size()\n", "f")() == 4


def test_a_class_of_static_methods_travels():
    box = "class Box:\n    @staticmethod\n    def size():\n        return 4\n"
    assert carried(f"{box}\ndef f():\n    return Box.size()\n", "f")() == 4


def test_a_decorated_class_travels():
    box = "from dataclasses import dataclass\n\n@dataclass\nclass Box:\n    width: int\n    def size(self):\n"
    assert carried(f"{box}        return self.width\n\ndef f():\n    return Box(5).size()\n", "f")() == 5


def test_a_method_of_something_imported_is_refused():
    with pytest.raises(CannotCarry, match="f uses 'link', a builtin_function_or_method that is made outside"):
        carry(
            "f", executed("from itertools import chain\nlink = chain.from_iterable\n\ndef f(x):\n    return link(x)\n")
        )


def test_a_local_variable_may_bear_the_name_of_another_cells_tensor():
    f = carried("spare = object()\n\ndef f(x):\n    spare = x + 1\n    return [spare for _ in (1, 2)]\n", "f")
    assert f(1) == [2, 2]


def test_a_dtype_travels():
    assert (
        carried("kind = torch.int64\n\ndef f():\n    return torch.zeros(1, dtype=kind)\n", "f")().dtype == torch.int64
    )


def test_the_function_keeps_its_lines():
    """An error in it is told with the line number that the student sees, the magic on line 1."""
    cell = "#%%ranks\ntwo = 2\n\ndef helper(x):\n    return x + two\n\n\ndef f(x):\n    return helper(x)\n"
    lines = carry("f", executed(cell)).splitlines()
    assert lines[7:] == ["def f(x):", "    return helper(x)"]
    imports = "import math; from math import cos, sin\n\ndef f(x):\n    return math.exp(sin(x) + cos(x))\n"
    assert carry("f", executed(imports)).splitlines()[2] == "def f(x):"
    decorated = "#%%ranks\n@torch.no_grad()\ndef f(x):\n    return x\n"
    assert carry("f", executed(decorated)).splitlines()[1] == "@torch.no_grad()"


def test_a_function_below_a_long_helper_still_travels():
    cell = "def f(x):\n    return helper(x)\n\ndef helper(x):\n    y = x\n    return y\n"
    assert carried(cell, "f")(3) == 3


def test_a_function_without_source_is_refused():
    with pytest.raises(CannotCarry, match="the source of 'f' cannot be found; define it in a cell"):
        carry("f", executed("exec('def f(x): return x')\n"))


def test_a_name_that_is_not_there_is_asked_for():
    with pytest.raises(CannotCarry, match="there is no function 'f' on the ranks yet; run the cell .* %%ranks"):
        carry("f", executed("g = 3\n"))


def test_a_value_without_text_is_refused():
    with pytest.raises(CannotCarry, match="f uses 'table', a object that is made outside"):
        carry("f", executed("table = object()\n\ndef f(x):\n    return table\n"))


def test_what_is_no_function_is_refused():
    with pytest.raises(CannotCarry, match="'g' is no function, but of type int; define it with def g"):
        carry("g", executed("g = 3\n"))


@pytest.mark.parametrize(
    "source, lines",
    [
        ("def f(x):\n    ...\n", [2]),
        ("def f(x):\n    x[...] += 1\n", []),
        ("def f(x):\n    y = x[..., 0]\n    x[k] = ...\n", [3]),
        ("def f(x):\n    chunks[...] += 1\n", []),
        ("def f(x):\n    chunks[(...) % p] += 1\n", [2]),
        ("def f(x):\n    return x\n", []),
        ("def f(x):\n    if x:\n        ...\n    x = ...\n", [3, 4]),
    ],
)
def test_a_blank_is_found(source, lines):
    assert blanks(source) == lines


@pytest.mark.parametrize(
    "source, stub",
    [
        ('def f(x):\n    """Words."""\n    ...\n', True),
        ("def f(x):\n    out = torch.empty_like(x)\n    ...\n    return out\n", False),
        ("def f(x):\n    def g():\n        ...\n    ...\n", False),
        ("def f(x):\n    if x:\n        ...\n", False),
        ("def f(x):\n    return ...\n", False),
        ("def g(x):\n    ...\n\ndef f(x):\n    return g(x)\n", False),
    ],
)
def test_a_function_without_a_body_is_a_stub(source, stub):
    assert is_stub(source, "f") is stub
