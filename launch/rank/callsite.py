"""Where in the student's code a call was made, and what the student calls the tensors in it.

The kernel of an op runs below many frames of torch. The student's frames are those whose file is a notebook cell or any
file that is not installed software: not Python's library, not site-packages, not this package.

Left out: threads other than the caller's. DDP's backward runs in autograd's threads on GPUs, where no frame is the
student's; then the main thread's frames are used.
"""

import linecache
import os
import sys
import sysconfig
import threading
from typing import NamedTuple

import torch

_INSTALLED = tuple(
    os.path.join(path, "")
    for path in {
        *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
        os.path.dirname(os.path.abspath(__file__)),
    }
)
_TORCH_DISTRIBUTED = os.path.dirname(torch.distributed.__file__)
_QUIET = {"wrapper", "_call_impl", "_wrapped_call_impl", "__call__", "decorate_context", "inner"}  # decorators: no news
_DEPTH = 8  # student frames that are looked at
_ITEMS = 64  # tensors of one list

_ours: dict[str, bool] = {}


class Site(NamedTuple):
    """The student's innermost frame: `file` is "" for a notebook cell; `stack` has (file, line) of all of them, inside
    out."""

    file: str
    line: int
    function: str
    stack: tuple[tuple[str, int], ...]
    via: tuple[str, ...]  # functions of torch.distributed between the student and the op, outside in


class Name(NamedTuple):
    """A tensor that a student's variable reaches: `path` is "acc" or "chunks[2]"; `index` and `length` are for list
    items."""

    path: str
    tensor: torch.Tensor
    base: str
    index: int | None = None
    length: int = 0


def is_students(filename: str) -> bool:
    """Whether code of this file is the student's."""
    known = _ours.get(filename)
    if known is None:
        cell = is_cell(filename)
        known = cell or (not filename.startswith(("<", *_INSTALLED)) and "site-packages" not in filename)
        _ours[filename] = known
    return known


def is_cell(filename: str) -> bool:
    """ipykernel compiles cells as /tmp/ipykernel_PID/HASH.py; plain IPython and exec use <...>."""
    return "ipykernel_" in filename or filename.startswith(("<ipython-input", "<cell", "<stdin", "<string"))


def frames() -> tuple[list, tuple[str, ...]]:
    """The student's frames, inside out, and the torch.distributed functions that lie between them and the op."""
    frame, found, via = sys._getframe(1), [], []
    while frame is not None and len(found) < _DEPTH:
        code = frame.f_code
        if _ours.get(code.co_filename) or is_students(code.co_filename):
            found.append(frame)
            if code.co_name.startswith(("<module", "<cell")) and is_cell(code.co_filename):
                break  # the cell itself: what called it is the kernel
        elif not found and code.co_filename.startswith(_TORCH_DISTRIBUTED) and code.co_name not in _QUIET:
            via.append(code.co_name)
        frame = frame.f_back
    if not found and threading.current_thread() is not threading.main_thread():
        frame = sys._current_frames().get(threading.main_thread().ident)
        while frame is not None and len(found) < _DEPTH:
            if is_students(frame.f_code.co_filename):
                found.append(frame)
            frame = frame.f_back
    return found, tuple(reversed(via))


def line_and_file() -> tuple[int, str]:
    """The cheap form, for every call: line and file ("" for a cell) of the student's innermost frame; (0, "") if
    none."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        ours = _ours.get(filename)
        if ours or (ours is None and is_students(filename)):
            return frame.f_lineno, short(filename)
        frame = frame.f_back
    found, _ = frames()
    return (found[0].f_lineno, short(found[0].f_code.co_filename)) if found else (0, "")


def called_by_torch(frame) -> bool:
    """Whether that frame is torch.distributed's own: a blocking call that waits for itself."""
    return frame.f_code.co_filename.startswith(_TORCH_DISTRIBUTED)


def short(filename: str) -> str:
    return "" if is_cell(filename) else os.path.basename(filename)


def site(found, via) -> Site:
    """The Site of what `frames` found."""
    if not found:
        return Site("", 0, "", (), via)
    stack = tuple((frame.f_code.co_filename, frame.f_lineno) for frame in found)
    inner = found[0].f_code
    return Site(short(inner.co_filename), stack[0][1], inner.co_name, stack, via)


def code_of(filename: str, line: int) -> str:
    """The text of the line, without its indentation."""
    return linecache.getline(filename, line).strip()


def names(found) -> list[Name]:
    """The tensors that the frames' variables reach: innermost frame first, lists and tuples one level deep.

    At the top level of a notebook only names that the cell's source mentions are followed: the namespace holds all the
    variables of the session.
    """
    result = []
    for frame in found:
        variables = frame.f_locals
        if frame.f_code.co_name == "<module>" or variables is frame.f_globals:
            wanted = mentioned(frame.f_code.co_filename) or frame.f_code.co_names
            variables = {name: variables[name] for name in wanted if name in variables}
        result += reached(variables)
    return result


def reached(variables: dict) -> list[Name]:
    """The tensors among the variables, and in lists and tuples among them."""
    result = []
    for name, value in variables.items():
        if isinstance(value, torch.Tensor):
            result.append(Name(name, value, name))
        elif type(value) in (list, tuple) and value and isinstance(value[0], torch.Tensor) and len(value) <= _ITEMS:
            tensors = [item for item in value if isinstance(item, torch.Tensor)]
            if len(tensors) == len(value):
                result += [Name(f"{name}[{i}]", item, name, i, len(value)) for i, item in enumerate(value)]
    return result


_mentioned: dict[str, tuple] = {}


def mentioned(filename: str) -> tuple[str, ...]:
    """The names at the top level of a cell's source, in order; () if it has none that can be read."""
    if filename not in _mentioned:
        source = "".join(linecache.getlines(filename))
        try:
            names = _names_in(compile(source, filename, "exec", flags=0x2000, dont_inherit=True)) if source else ()
        except (SyntaxError, ValueError):  # a cell with magics: fall back to the names of the running statement
            names = ()
        _mentioned[filename] = names
    return _mentioned[filename]


def _names_in(code) -> tuple[str, ...]:
    """Global names that the code object or a function in it uses (0x2000 allows top-level await, as cells do)."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            found.update(dict.fromkeys(_names_in(constant)))
    return tuple(name for name in found if not name.startswith("_"))
