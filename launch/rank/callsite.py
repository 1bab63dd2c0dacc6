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
from collections.abc import Callable
from functools import cache
from types import FrameType, ModuleType

import torch

from launch.hints.place import is_cell
from launch.rank._ops import PLAIN

_INSTALLED = tuple(
    os.path.join(path, "")
    for path in {
        *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    }
)
_TORCH_DISTRIBUTED = os.path.dirname(torch.distributed.__file__)
_DEPTH = 8  # student frames that are looked at
_ITEMS = 64  # tensors of one list
_TOP = ("<module", "<cell")  # how the names of a cell's code begin

_owners: dict[str, str] = {}
_under_way = ""  # "In[7]": the cell that runs
_cell_of: Callable[[str], tuple[str, str] | None] | None = None  # ("Cell", "In[7]") for the file of that cell


def owner_of(filename: str) -> str:
    """Whose code a file holds: "cell" or "file" for the student's, "torch.distributed", "other"."""
    owner = _owners.get(filename)
    if owner is None:
        owner = _owners[filename] = _find_owner(filename)
    return owner


def _find_owner(filename: str) -> str:
    if is_cell(filename):
        return "cell"
    if filename.startswith(_TORCH_DISTRIBUTED):
        return "torch.distributed"
    return "other" if filename.startswith(("<", *_INSTALLED)) or "site-packages" in filename else "file"


def is_students(filename: str) -> bool:
    """Whether code of this file is the student's."""
    return owner_of(filename) in ("cell", "file")


def frame_of(thread: threading.Thread) -> FrameType | None:
    """Where the thread is now; None if it has ended."""
    return sys._current_frames().get(thread.ident or 0)


def frames() -> list[FrameType]:
    """The student's frames above the caller, innermost first."""
    found = _students(sys._getframe(1))
    if not found and isinstance(threading.current_thread(), threading._DummyThread):  # one of autograd's
        return frames_of_main_thread()
    return found


def frames_of_main_thread() -> list[FrameType]:
    """The student's frames of the main thread, innermost first. From any thread."""
    return _students(frame_of(threading.main_thread()))


def _students(frame: FrameType | None) -> list[FrameType]:
    """The student's frames from this one up to the top level of the cell."""
    found: list[FrameType] = []
    while frame is not None and len(found) < _DEPTH:
        code = frame.f_code
        owner = _owners.get(code.co_filename) or owner_of(code.co_filename)
        if owner == "cell" or owner == "file":
            found.append(frame)
            if owner == "cell" and code.co_name.startswith(_TOP):  # what called it is the kernel
                break
        frame = frame.f_back
    return found


def innermost() -> FrameType | None:
    """The first of `frames`, without the search for the others."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        filename = frame.f_code.co_filename
        owner = _owners.get(filename) or owner_of(filename)
        if owner == "cell" or owner == "file":
            return frame
        frame = frame.f_back
    return next(iter(frames()), None)


def line_and_file() -> tuple[int, str]:
    """The cheap form, for every call: line and `whereabouts` of the student's innermost frame; (0, "") if none."""
    frame = innermost()
    return line_and_file_of([frame] if frame else [])


def line_and_file_of(found: list[FrameType]) -> tuple[int, str]:
    """The same of what `frames` found."""
    return (found[0].f_lineno, whereabouts(found[0].f_code.co_filename)) if found else (0, "")


def where(found: list[FrameType]) -> str:
    """The same in words: "line 3", "line 7 of train.py"; "" if none."""
    line, file = line_and_file_of(found)
    return f"line {line}{file and f' of {file}'}" if line else ""


def line(above: int = 1) -> int:
    """The line of the innermost frame in a cell, from so many frames above this one; 0 if there is none."""
    frame: FrameType | None = sys._getframe(above)
    while frame is not None:
        filename = frame.f_code.co_filename
        if (_owners.get(filename) or owner_of(filename)) == "cell":
            return frame.f_lineno
        frame = frame.f_back
    return 0


def is_blocking() -> bool:
    """Whether the call under way is one of torch.distributed's functions that was not asked for a Work."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        owner = _owners.get(code.co_filename) or owner_of(code.co_filename)
        if owner == "torch.distributed" and "async_op" in code.co_varnames:
            return frame.f_locals["async_op"] is False
        if owner == "cell" or owner == "file":
            return False
        frame = frame.f_back
    return False


def called_by_torch(frame) -> bool:
    """Whether that frame is torch.distributed's own: a blocking call that waits for itself."""
    return owner_of(frame.f_code.co_filename) == "torch.distributed"


def cell_begins(number: int, cell_of: Callable[[str], tuple[str, str] | None]) -> None:
    """The cell of that number is the one under way; `cell_of` is IPython's `format_code_name`."""
    global _under_way, _cell_of
    _under_way, _cell_of = f"In[{number}]", cell_of


def whereabouts(filename: str) -> str:
    """What a line number of that file needs behind it: "train.py", "cell In[3]", "" in the cell under way."""
    if owner_of(filename) != "cell":
        return os.path.basename(filename)
    _, name = (_cell_of and _cell_of(filename)) or ("", "")
    return f"cell {name}" if name and name != _under_way else ""


def short(filename: str) -> str:
    """Its name without folders, "" of any cell."""
    return "" if owner_of(filename) == "cell" else os.path.basename(filename)


def site(filename: str, line: int) -> list:
    """[name of the file, line, its text] for a recording."""
    return [short(filename), line, linecache.getline(filename, line).strip()]


def variables_of(frame) -> dict:
    """The variables of a frame of the student's, and in a method "self.x" of its object. At the top level only those
    that the cell's source mentions."""
    variables = frame.f_locals
    if frame.f_code.co_name.startswith(_TOP) or variables is frame.f_globals:
        wanted = mentioned(frame.f_code.co_filename) or frame.f_code.co_names
        everything = frame.f_globals
        if variables is not everything:  # from Python 3.12 on those of a comprehension, alone
            everything = {**everything, **variables}
        variables = {name: everything[name] for name in wanted if name in everything}
    elif "self" in variables:
        variables = {**variables, **attributes("self", variables["self"])}
    return variables


def attributes(name: str, value) -> dict:
    """{"self.x": ...} of an object of one of the student's classes."""
    if type(value).__module__ not in ("__main__", "builtins") or type(value) is ModuleType:
        return {}
    try:  # past a __getattr__ of the student's; a copy, since another thread may add some meanwhile
        held = dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:  # it has slots
        return {}
    return {f"{name}.{each}": found for each, found in held.items()}


def reached(variables: dict) -> list[tuple]:
    """(path, tensor) of the tensors among the variables, and one level deep in lists, tuples and objects of the
    student's classes; `path` is "acc", "chunks[2]" or "ring.x"."""
    result, held = [], {**variables}
    for pair in variables.items():
        held.update(attributes(*pair))
    for name, value in held.items():
        if type(value) in PLAIN:
            result.append((name, value))
        elif is_list_of_tensors(value):
            result += zip(paths(name, len(value)), value, strict=True)
    return result


def is_list_of_tensors(value) -> bool:
    """Whether it is a list or tuple of tensors, and not too long to be a handful of chunks."""
    if type(value) is not list and type(value) is not tuple or not 0 < len(value) <= _ITEMS:
        return False
    for item in value:  # `all` would take twice as long, and this is asked of every list at every recorded call
        if type(item) not in PLAIN:
            return False
    return True


@cache
def paths(name: str, length: int) -> list[str]:
    """ "chunks[0]", "chunks[1]", ... of a list of that length."""
    return [f"{name}[{i}]" for i in range(length)]


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
