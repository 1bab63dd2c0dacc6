"""Collect the source of a student's function and of everything of the student's that it uses.

A check runs the function on ranks of its own, with other world sizes than the student's, so the function has to
travel there. It travels as text: what a reader sees is what is judged, and nothing is pickled. This file is itself
sent to a rank as text and run there, so it stands alone. What cannot travel (a tensor made in another cell, say) is
refused with a sentence: a collective that needs it would be right only where that cell ran.
"""

import ast
import dis
import functools
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Callable
from typing import TypeGuard

GIVEN = {"rank", "world_size", "torch", "dist"}
"""Names that every rank has anyway."""

IMPORTS = ("import ", "from ")


class CannotCarry(Exception):
    """The function uses something that has no source."""


def carry(name: str, namespace: dict) -> str:
    """Return Python source that defines `name` anew in an empty namespace of a rank.

    The function stands on the lines that it has in its cell, unless what it uses is longer than the cell above it: the
    line numbers in a verdict are those that the student sees. Raises CannotCarry when `name` is not a function, or when
    it uses a value that cannot be written as text.
    """
    if name not in namespace:
        raise CannotCarry(
            f"there is no function {name!r} on the ranks yet; run the cell that defines it, with %%ranks at its top"
        )
    if not _is_function(namespace[name]):
        raise CannotCarry(
            f"{name!r} is no function, but of type {type(namespace[name]).__name__}; define it with def {name}"
        )
    pieces = _pieces(name, namespace)
    *used, own = (piece.rstrip("\n") + "\n" for piece in pieces.values())
    imports = "; ".join(piece.rstrip("\n") for piece in used if piece.startswith(IMPORTS))  # on one line
    lines = imports + "\n" * bool(imports) + "".join(piece for piece in used if not piece.startswith(IMPORTS))
    missing = line_of(name, namespace) - 1 - lines.count("\n")
    return lines + "#\n" * missing + own  # comments: IPython strips empty lines at the top


def line_of(name: str, namespace: dict) -> int:
    """The line of its cell, from 1, on which the function begins."""
    return inspect.unwrap(namespace[name]).__code__.co_firstlineno


def cells(name: str, namespace: dict, numbers: dict[str, int]) -> dict[str, int]:
    """In which executions `name` and the functions that it uses were defined, the ones in cells; `numbers` has the
    execution of every cell's file. `name` comes first."""
    found = {}
    try:
        pieces = _pieces(name, namespace)
    except CannotCarry:
        pieces = {}
    for used in [name, *pieces]:
        value = namespace.get(used)
        code = getattr(inspect.unwrap(value), "__code__", None) if _is_function(value) else None
        if code is not None and used == code.co_name and code.co_filename in numbers:
            found[used] = numbers[code.co_filename]
    return found


def values(name: str, namespace: dict) -> dict[str, str]:
    """The variables of other cells that `name` and what it uses need, as repr() writes them."""
    try:
        used = _pieces(name, namespace)
    except CannotCarry:
        return {}
    return {each: repr(namespace[each]) for each in used if not hasattr(namespace[each], "__module__")}


def _pieces(name: str, namespace: dict) -> dict[str, str]:
    """The source of `name`, and before it that of everything that it uses, by name."""
    pieces: dict[str, str] = {}
    _collect(name, namespace, pieces, wanted_by=None)
    return pieces


def _collect(name: str, namespace: dict, pieces: dict, wanted_by: str | None) -> None:
    """Put the source of `name` into `pieces`, after the source of everything that it uses."""
    if name in pieces or name in GIVEN or name not in namespace:
        return
    value = namespace[name]
    if isinstance(value, types.ModuleType):
        pieces[name] = f"import {value.__name__} as {name}"
    elif _can_be_imported(value):
        pieces[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
    elif _is_function(value) or inspect.isclass(value):
        source = _source_of_class(value) if inspect.isclass(value) else _source_of_function(value)
        pieces[name] = ""  # marks it as begun, so that recursion ends
        for used in sorted(_names_used(source)):
            _collect(used, namespace, pieces, wanted_by=name)
        del pieces[name]  # back to the end: what it uses comes first
        pieces[name] = source
    elif _is_literal(value) or isinstance(value, sys.modules["torch"].dtype):
        pieces[name] = f"{name} = {value!r}"
    else:
        raise CannotCarry(
            f"{wanted_by} uses {name!r}, a {type(value).__name__} that is made outside of it; make it inside "
            f"{wanted_by}"
        )


def _is_function(value: object) -> TypeGuard[Callable]:
    """Whether it was written with def, also below `functools.cache`."""
    return inspect.isfunction(value) or isinstance(value, functools._lru_cache_wrapper)


def _source_of_function(function: Callable) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except OSError:  # made by exec, say
        name = function.__name__
        raise CannotCarry(f"the source of {name!r} cannot be found; define it in a cell, with def {name}") from None


def _source_of_class(cls: type) -> str:
    """The source of a class made in a cell; a method leads there: Python 3.11 finds only functions."""
    for found in vars(cls).values():
        member = getattr(found, "__func__", found)  # of a staticmethod
        if inspect.isfunction(member):
            lines = linecache.getlines(member.__code__.co_filename)
            for node in ast.walk(ast.parse("".join(lines))):
                if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                    return textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))
    raise CannotCarry(f"the source of the class {cls.__name__!r} cannot be found; give it a method, or use a function")


def _names_used(source: str) -> set[str]:
    """Every name that the source looks up outside its functions: their own variables are no concern of other cells."""
    used, todo = set(), [compile(source, "<carried>", "exec")]
    while todo:
        code = todo.pop()
        used |= {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        todo += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return used


def _can_be_imported(value: object) -> bool:
    """Whether it has a place in a module: not a method, nor a function inside another."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    return isinstance(module, str) and module != "__main__" and name.isidentifier()


def _is_literal(value: object) -> bool:
    """Whether repr() of the value reads back as the value."""
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError, RuntimeError, TypeError):
        return False


def blanks(source: str) -> list[int]:
    """The lines (from 1) of each `...` that the student has not replaced yet.

    An Ellipsis used as an index (`x[..., 0]`) is no blank; one in a formula (`x[(...) % p]`) is.
    """
    tree = ast.parse(source)
    slices = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    indices = {id(part) for index in slices for part in (index.elts if isinstance(index, ast.Tuple) else [index])}
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value is Ellipsis and id(node) not in indices
    )


def is_stub(source: str, name: str) -> bool:
    """Whether a `...` is all there is of the function `name` below its docstring; what is half written is no stub."""
    bodies = [node.body for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name]
    return any({ast.unparse(line) for line in body if not _is_text(line)} == {"..."} for body in bodies)


def _is_text(line: ast.stmt) -> bool:
    """Whether the line is a string by itself, such as a docstring."""
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
