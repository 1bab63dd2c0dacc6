"""Rules about names: variables, attributes and modules that are missing, or are something else.

Left out: where a name lives that this process does not have (launch/kernel/whereabouts.py).
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import math
import os
import sys
from difflib import get_close_matches

from launch.hints._calls import FORMS
from launch.hints.place import Place, bindings, deletes, is_reduction, is_tensor, last_set_to

ALIASES = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "optim": "from torch import optim",
}
OTHER_NAMES = {"receive": "recv", "ireceive": "irecv", "async_send": "isend", "gather_all": "all_gather"}
"""Names from elsewhere -> torch.distributed's name, if the spelling is too different to be guessed."""
PACKAGES = {  # module -> what pip calls it
    **{name: name for name in ("matplotlib", "pandas", "seaborn", "scipy", "torchvision", "transformers", "psutil")},
    **{name: name for name in ("tensorboard", "datasets", "sympy", "networkx", "einops", "mpi4py")},
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "cv2": "opencv-python",
    "skimage": "scikit-image",
}
COUNTING = {"range", "chunk", "split", "narrow", "reshape", "view", "repeat", "empty", "zeros", "ones"}


def missing(error: BaseException) -> str:
    """The name of a NameError; "" for other errors."""
    return (error.name or "") if type(error) is NameError else ""


def not_come_by(error, place: Place) -> str:
    """A variable that the code sets in a line that this rank has not run: another branch, or a later line."""
    name, scope = missing(error), place.scope
    if isinstance(error, UnboundLocalError):
        target = place.node.target if isinstance(place.node, ast.AugAssign) else place.node
        name = target.id if isinstance(target, ast.Name) else ""
    elif not bindings(scope, name):
        scope = place.tree
    earlier = scope is place.tree and not place.in_this_cell  # a cell that may have run, in a process that is no more
    if not name or earlier or deletes(place.tree, name):
        return ""
    setting = bindings(scope, name)
    outer = isinstance(error, UnboundLocalError) and name in place.frame.f_globals
    another = f"; the {name} outside of the function is another variable" if outer else ""
    lines = sorted({node.lineno for node in setting} - {place.line})
    if len(lines) == 1:
        return f"line {lines[0]} sets {name}, but has not run here{another}"
    if lines:
        return f"lines {lines[0]} to {lines[-1]} set {name}, but none of them has run here{another}"
    return ""


def no_value_yet(error, place: Place) -> str:
    """`total += x` before there is a total."""
    target = place.node.id if isinstance(place.node, ast.Name) and isinstance(error, NameError) else ""
    setting = [node for node in bindings(place.scope, target) if node.lineno == place.line]
    if not any(isinstance(node, ast.AugAssign) for node in setting):
        return ""
    outer = isinstance(error, UnboundLocalError) and target in place.frame.f_globals
    another = f"; the {target} outside of the function is another variable" if outer else ""
    return f"line {place.line} changes {target}, which has no value yet: set it before{another}"


def from_torch(error, place: Place) -> str:
    """`send(x, 1)`, `torch.send(x, 1)`, `dist.SUM`, `arange(4)`: torch has it elsewhere."""
    torch, dist = place.value("torch"), place.value("dist")
    name = missing(error) or (error.name if isinstance(error, AttributeError) else "") or ""
    owner = error.obj if isinstance(error, AttributeError) else None
    of_torch = getattr(torch, "__name__", "") == "torch" and getattr(dist, "__name__", "") == "torch.distributed"
    if not of_torch or not name or owner not in (None, torch, dist):
        return ""
    if is_reduction(name):
        return f"did you mean dist.ReduceOp.{name}?"
    if owner is None and isinstance(getattr(torch, name, None), torch.dtype):
        return f"did you mean torch.{name}?"
    if owner is None and name == "ReduceOp":
        return "did you mean dist.ReduceOp?"
    if owner is None and not is_called(name, place):
        return ""
    if owner in (None, dist) and (other := get_close_matches(name, OTHER_NAMES, n=1, cutoff=0.8)):
        return f"did you mean dist.{OTHER_NAMES[other[0]]}?"
    of_dist = name in FORMS or inspect.isfunction(getattr(dist, name, None)) and not hasattr(torch.cuda, name)
    if owner is not dist and of_dist:
        return f"did you mean dist.{name}?"
    if owner is None and hasattr(math, name):
        return f"did you mean math.{name}, after import math?"
    return f"did you mean torch.{name}?" if owner is None and callable(getattr(torch, name, None)) else ""


def is_called(name: str, place: Place) -> bool:
    calls = [node.func for node in ast.walk(place.tree) if isinstance(node, ast.Call)]
    return any(isinstance(function, ast.Name) and function.id == name for function in calls)


def not_imported(error, place: Place) -> str:
    """`np.ones(4)`, `time.time()`."""
    name = missing(error)
    dotted = any(
        isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name
        for n in ast.walk(place.tree)
    )
    line = ALIASES.get(name) or (f"import {name}" if name in sys.stdlib_module_names else "")
    if not dotted or not name:
        return ""
    if is_part("collectives", name):
        return f"it has not been imported: from collectives import {name}"
    if not line:
        return ""
    package = line.split()[1].partition(".")[0]
    if importlib.util.find_spec(package) is None:
        return f"{not_installed(package)}; {name} is usually {line}"
    return f"it has not been imported: {line}"


def no_such_module(error, place: Place) -> str:
    """`import matplotlib` where there is none, `import nunpy`, `from solutions.shift import shift`."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    package, _, part = error.name.partition(".")
    if part and importlib.util.find_spec(package) is not None:
        return ""
    if package in PACKAGES:
        return not_installed(package)
    if is_part("course", package):
        return f"did you mean course.{error.name}?"
    close = spelt_like(package, ["torch", "numpy", "plotly", *PACKAGES]) or spelt_like(package, sys.stdlib_module_names)
    where = f"no package {package} is installed, and there is no {package}.py beside the notebook"
    return f"did you mean {close}?" if close else where


def is_part(package: str, name: str) -> bool:
    """Whether the package has a module of that name; the package is not imported for it."""
    found = importlib.util.find_spec(package)
    folders = (found.submodule_search_locations or ()) if found else ()
    return any(os.path.exists(f"{folder}/{name}") or os.path.exists(f"{folder}/{name}.py") for folder in folders)


def not_installed(package: str) -> str:
    draws = "; plotly is here and draws too" if package in ("matplotlib", "seaborn") else ""
    install = f"%pip install {PACKAGES[package]} in a cell of its own, then run this one again"
    return f"{package} is not installed: {install}{draws}"


def misspelt(error, place: Place) -> str:
    """A name or an attribute that is spelt nearly like another one. A question, since it may be something else."""
    if name := missing(error):
        everywhere = [*place.frame.f_globals, *vars(builtins)]  # and before these, what the function itself has
        close, owner = spelt_like(name, place.frame.f_locals) or spelt_like(name, everywhere), ""
    elif isinstance(error, AttributeError) and getattr(error.obj, "__name__", "") == "ReduceOp":
        return "torch has " + ", ".join(n for n in dir(error.obj) if is_reduction(n))
    elif isinstance(error, AttributeError) and error.name and error.obj is not None:
        close = spelt_like(error.name, dir(error.obj))
        owner = f"{ast.unparse(place.node.value)}." if isinstance(place.node, ast.Attribute) else ""
    else:
        return ""
    return f"did you mean {owner}{close}?" if close else ""


def spelt_like(name: str, known) -> str:
    """A known name that differs in capitals only, or begins alike and differs a little; "" if there is none."""
    known = [other for other in known if other[:1].lower() == name[:1].lower() and not other.startswith("_")]
    same = [other for other in known if other.lower() == name.lower()]
    close = same or (get_close_matches(name, known, n=1, cutoff=0.75) if len(name) > 2 else [])
    return close[0] if close else ""


def not_a_function(error, place: Place) -> str:
    """`rank()`, or `sum(x)` after `sum = 0`."""
    call = place.node
    if not isinstance(error, TypeError) or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return ""
    name = call.func.id
    value = place.value(name)
    if callable(value) or not place.has(name):
        return ""
    kind = type(value).__name__
    if hasattr(builtins, name) and name in place.frame.f_globals and name not in place.frame.f_code.co_varnames:
        return f"a cell has set {name} to something else ({kind}): del {name} gives Python's own back"
    return f"{name} is not a function ({kind})" + (f": write {name} without ()" if not call.args else "")


def whole_numbers(error, place: Place) -> str:
    """`x /= 2` for a tensor of whole numbers."""
    node = place.node
    if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Div) or not isinstance(error, RuntimeError):
        return ""
    if not isinstance(node.target, ast.Name):
        return ""
    value = place.value(node.target.id)
    whole = is_tensor(value) and not value.is_floating_point() and not value.is_complex()
    if not whole or "can't be cast" not in str(error):
        return ""
    kind, name = str(value.dtype).removeprefix("torch."), node.target.id
    return f"{name} holds whole numbers ({kind}), and /= keeps that: {name} = {name} / ... makes a tensor of fractions"


def item_of_a_tuple(error, place: Place) -> str:
    """`c = x.chunk(4)`, then `c[0] += b`: the tensor has changed by the time that the tuple refuses."""
    node = place.node
    if not isinstance(error, TypeError) or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return ""
    name = node.value.id
    if not isinstance(node.ctx, ast.Store) or not isinstance(place.value(name), tuple):
        return ""
    value = last_set_to(name, place)
    made = ast.unparse(value) if isinstance(value, ast.Call) else name
    again = any(isinstance(n, ast.AugAssign) and n.target is node for n in ast.walk(place.tree))
    done = f"; the tensor in {ast.unparse(node)} has already changed: reset it before you run this again"
    changed = again and all(map(is_tensor, place.value(name)))
    return f"{name} is a tuple, whose items cannot be replaced: {name} = list({made})" + (done if changed else "")


def fewer_pieces(error, place: Place) -> str:
    """`c = x.chunk(4)`, then `c[3]`, for a tensor of 5 elements: chunk makes pieces of 2."""
    node = place.node
    if not isinstance(error, IndexError) or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return ""
    pieces, made = place.value(node.value.id), last_set_to(node.value.id, place)
    if isinstance(made, ast.Call) and ast.unparse(made.func) in ("list", "tuple") and made.args:
        made = made.args[0]
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute) or made.func.attr != "chunk":
        return ""
    torch = sys.modules["torch"]
    of_torch = place.value(ast.unparse(made.func.value)) is torch
    args = [value_of(arg, place) for arg in (made.args if of_torch else [made.func.value, *made.args])]
    named = {k.arg: value_of(k.value, place) for k in made.keywords if k.arg}
    if len(args) < 2 or not is_tensor(args[0]) or type(args[1]) is not int:
        return ""
    count = len(torch.chunk(*args, **named))  # the list may have changed since
    if not count == len(pieces) < args[1]:
        return ""
    instead = ast.unparse(made).replace("chunk(", "tensor_split(", 1)
    return f"line {made.lineno}: chunk made {count} pieces, not {args[1]}: {instead} makes {args[1]}"


def value_of(node: ast.AST, place: Place):
    """The value of a name or of a constant; None of anything else."""
    return place.value(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)


def without_gpu(error, place: Place) -> str:
    """`x.cuda()` on a machine without a GPU."""
    torch, module = sys.modules.get("torch"), place.innermost.f_globals.get("__name__", "")
    if torch is None or not module.startswith("torch.cuda") or torch.cuda.is_available():
        return ""
    return 'torch finds no GPU here, and the ranks compute on CPUs: leave out .cuda(), torch.cuda and device="cuda"'


def loops_over_a_number(error, place: Place) -> str:
    """`for r in world_size`."""
    loops = [n for n in ast.walk(place.tree) if isinstance(n, (ast.For, ast.comprehension))]
    node = place.node
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        node = node.generators[0].iter
    over = next((n.iter for n in loops if node in (n, n.iter)), None)  # the loop, or what it loops over: by Python
    if not isinstance(error, TypeError) or not isinstance(over, ast.Name) or type(place.value(over.id)) is not int:
        return ""
    return f"{over.id} is a number: range({over.id}) counts up to it"


def compared(error, place: Place) -> str:
    """`if x == y` with tensors, which is a tensor, too; `if x == 3`. Lists of tensors are compared otherwise."""
    node = place.node
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return ""
    if "ambiguous" not in str(error) or not isinstance(error, RuntimeError):
        return ""
    sure = [makes_tensor(side, place) for side in (node.left, node.comparators[0])]
    test = f"torch.equal({ast.unparse(node.left)}, {ast.unparse(node.comparators[0])})"
    test = test if all(sure) else f"({ast.unparse(node)}).all()"
    return f"== compares element by element: {test} is True if all are equal" if any(sure) else ""


def one_number(error, place: Place) -> str:
    """`x.item()`, `float(x)` for a tensor of several elements."""
    call = place.node
    if not isinstance(call, ast.Call) or not isinstance(error, (RuntimeError, ValueError)):
        return ""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args:
        taken, what = call.func.value, "item()"
    elif isinstance(call.func, ast.Name) and call.func.id in ("int", "float") and len(call.args) == 1:
        taken, what = call.args[0], f"{call.func.id}()"
    else:
        return ""
    value = place.value(taken.id) if isinstance(taken, ast.Name) else None
    if value is None or not is_tensor(value) or value.numel() == 1:
        return ""
    text = ast.unparse(taken)
    return f"{text} has {value.numel()} elements, and {what} is for one: {text}.tolist() makes a list of all"


def makes_tensor(node: ast.AST, place: Place) -> bool:
    """Whether the expression is a tensor for certain."""
    if isinstance(node, ast.BinOp):
        return makes_tensor(node.left, place) or makes_tensor(node.right, place)
    if isinstance(node, ast.Subscript):
        return makes_tensor(node.value, place)
    return isinstance(node, ast.Name) and is_tensor(place.value(node.id))


def fraction(error, place: Place) -> str:
    """`x[:len(x) / 2]`, or `range(n)` after `n = len(x) / world_size`: an index or a count is no fraction."""
    node = place.node
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        value = place.value(node.value.id)
        counts = [node.slice] if is_tensor(value) or isinstance(value, (list, tuple, str)) else []
    elif isinstance(node, ast.Call):
        counts = node.args if ast.unparse(node.func).rpartition(".")[2] in COUNTING and not is_own(node, place) else []
    else:
        return ""
    for part in (part for count in counts if isinstance(error, TypeError) for part in terms(count)):
        if made := makes_fraction(part, place):
            return f"line {part.lineno}: {made}"
        if isinstance(part, ast.Name) and type(place.value(part.id)) is float:
            if said := came_to_be_one(part.id, place):
                return said
    return ""


def is_own(call: ast.Call, place: Place) -> bool:
    """Whether the student has defined the function that is called."""
    return inspect.isfunction(place.value(call.func.id)) if isinstance(call.func, ast.Name) else False


def came_to_be_one(name: str, place: Place, names: int = 3) -> str:
    """Why a variable is a fraction: the line that made it one, through at most so many names."""
    value = last_set_to(name, place)
    for part in terms(value) if value is not None else ():
        if made := makes_fraction(part, place):
            return f"line {part.lineno}: {name} is not a whole number: {made}"
        if names > 1 and isinstance(part, ast.Name) and type(place.value(part.id)) is float:
            if said := came_to_be_one(part.id, place, names - 1):
                return said
    return ""


def terms(node: ast.AST):
    """The node and its operands."""
    yield node
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Slice, ast.Tuple)):
        for child in ast.iter_child_nodes(node):
            yield from terms(child)


def makes_fraction(node, place: Place) -> str:
    """Why the expression is a fraction; "" if it may be a whole number."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return "/ makes fractions, // makes whole numbers"
    function = place.called(node) if isinstance(node, ast.Call) else None
    name = getattr(function, "__name__", "")
    if getattr(function, "__module__", "") == "math" and name in ("log2", "log", "log10", "sqrt", "pow"):
        return f"math.{name} makes fractions, int(...) or math.ceil(...) makes whole numbers"
    return ""


RULES = (
    no_value_yet,
    item_of_a_tuple,
    fewer_pieces,
    without_gpu,
    loops_over_a_number,
    compared,
    one_number,
    fraction,
    from_torch,
    not_imported,
    no_such_module,
    not_a_function,
    whole_numbers,
    misspelt,
)
