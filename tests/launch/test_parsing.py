"""A rank's short way from a cell's text to code comes out where IPython's long one does."""

from types import SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TokenTransformBase, TransformerManager

from launch.rank import _parsing

PYTHON = (
    "x = 1\nif x:\n    print('%d!' % x, \"what?\")  # why?",
    "y = (7\n% 3)\n@decorated\nasync def f(): ...\nawait f()",
    "s = '''\n%time\n!ls\nhelp?\n'''",
    "In [1]: x = 5\n   ...: y = 6",
    ">>> x = 5\n5",
    "\n\n    x = 1\n    y = 2",
    "",
)
ITS_OWN = (
    "%time x = 1",
    "x = 1\n%time y = 2\nfiles = !ls",
    "%%time\nx = 1",
    "for i in range(3):\n    !echo {i}",
    "where = %pwd",
    "dist.send?",
    "x = 1\n?x",
    "not python at all (",
    "x = 'open",
)


@pytest.mark.parametrize("cell", PYTHON + ITS_OWN)
def test_a_cell_becomes_what_ipython_makes_of_it(cell):
    short = TransformerManager()
    _parsing.skip_tokens_of_python(short)
    assert short.transform_cell(cell) == TransformerManager().transform_cell(cell)


@pytest.mark.parametrize("cell", PYTHON + ITS_OWN)
def test_only_what_is_not_python_is_cut_into_tokens(cell):
    manager, cut = TransformerManager(), []
    manager.do_token_transforms = lambda lines: cut.append(lines) or lines
    _parsing.skip_tokens_of_python(manager)
    manager.transform_cell(cell)
    assert bool(cut) == (cell in ITS_OWN and not cell.startswith("%%"))  # of a cell magic nothing is left but a call


def test_a_transformer_of_the_students_sees_every_cell():
    class Shouting(TokenTransformBase):
        @classmethod
        def find(cls, tokens_by_line):
            return cls((1, 0)) if tokens_by_line[0][0].string == "x" else None

        def transform(self, lines):
            return [lines[0].upper(), *lines[1:]]

    manager = TransformerManager()
    _parsing.skip_tokens_of_python(manager)
    manager.token_transformers.append(Shouting)
    assert manager.transform_cell("x = 1\ny = x") == "X = 1\ny = x\n"


def test_a_cell_is_translated_once_and_the_next_one_anew():
    asked = []
    shell = SimpleNamespace(
        input_transformer_manager=TransformerManager(),
        compile=SimpleNamespace(),
        transform_cell=lambda cell: asked.append(cell) or cell,
        should_run_async=lambda cell, *, transformed_cell: asked.append("async"),
    )
    _parsing.shorten(shell)
    for _ in range(2):
        _parsing.forget(shell)
        for _ in range(2):
            shell.should_run_async("x = 1", transformed_cell=shell.transform_cell("x = 1"))
    assert asked == ["x = 1", "async"] * 2
    names = {shell.compile.get_code_name(text, text, 1) for text in ("x = 1", "x = 2", "x = '\udcff'", "x = 1")}
    assert len(names) == 3 and all("ipykernel_" in name for name in names)
