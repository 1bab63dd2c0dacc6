"""`%ranks export FILE.py`: the `%%ranks` cells as one script for torchrun.

The cells are a program already: they need a process group and the names `rank`, `world_size`, `dist` and `torch`.
`program` writes these first, then the cells, in the order of their last runs. The script imports torch alone.

It reports what a script cannot have: a cell that failed or was stopped, that ran on another number of ranks or without
the process group of the others, that uses IPython's syntax; a network that Ringside plays; a variable that the notebook
pushed.

Left out: the notebook's own cells, and figures and other displayed objects.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder

from launch.backends import BACKENDS
from launch.shared.errors import UsageError

GIVEN = {"rank", "world_size", "torch", "dist"}
FIRST = (
    '"""The %%ranks cells of a notebook as one script, written by %ranks export.'  # by which a script of ours is known
)

HEAD = """\
{first}

    torchrun --nproc-per-node={size} {name}

Every rank prints for itself: lines of several ranks come in any order.
\"\"\"

{future}{environ}import torch
import torch.distributed as dist

{begin}


def _show(value):
    \"\"\"What stood below the cell: the value of its last line.\"\"\"
    if value is not None:
        print(f"rank {{rank}}: {{value!r}}\\n", end="", flush=True)  # in one piece, since ranks share the terminal
"""
BEGIN = """dist.init_process_group("{backend}")
rank, world_size = dist.get_rank(), dist.get_world_size()"""
BEGIN_BARE = 'rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])'
ON_GPU = 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))\n'
END = """

if dist.is_initialized():
    dist.destroy_process_group()
"""


@dataclass
class Ran:
    """A `%%ranks` cell as it ran. number as in In[number]; `cell` is the front end's id of it, "" if it has none."""

    number: int
    cell: str
    source: str
    size: int
    backend: str
    only: list[int] | None = None
    bare: bool = False
    played: bool = False  # on a network that Ringside played
    ended: bool = False  # without an error


def export(path: str, ran: list[Ran]) -> str:
    """Writes the cells to the file and returns what to tell the student. UsageError if nothing can be written."""
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder: name a file in it, as in %ranks export {os.path.join(path, 'ring.py')}")
    if hides := _hides(path):
        raise UsageError(
            f"a file {os.path.basename(path)} would hide Python's module {hides} from all that runs in that folder, "
            "and no ranks would start there: choose another name"
        )
    if os.path.exists(path) and not _ours(path):
        raise UsageError(f"{path} is there already and %ranks export has not written it: choose another name")
    text, size, said = program(ran, os.path.basename(path))
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return "\n".join([f"{path} is written: torchrun --nproc-per-node={size} {path} runs it", *said])


def _hides(path: str) -> str:
    """The module that a file of this name would hide from Python; "" if there is none."""
    name, suffix = os.path.splitext(os.path.basename(path))
    if suffix != ".py":
        return ""
    found = PathFinder.find_spec(name) if name.isidentifier() and name not in sys.stdlib_module_names else None
    elsewhere = found is not None and found.origin and os.path.realpath(found.origin) != os.path.realpath(path)
    return name if elsewhere or name in sys.stdlib_module_names else ""


def _ours(path: str) -> bool:
    with open(path, errors="replace") as file:
        return file.readline().rstrip("\n") == FIRST


def program(ran: list[Ran], name: str) -> tuple[str, int, list[str]]:
    """(text of the script, the number of ranks it is for, sentences about what is not in it)."""
    latest = _last_runs(ran)
    like = next((cell for cell in reversed(latest) if cell.ended), None)
    if like is None:
        raise UsageError("there is nothing to export: no %%ranks cell has run to its end yet")
    parts, said = [], []
    future: dict[str, None] = {}
    for cell in latest:
        if why := _unfit(cell, like):
            said.append(f"cell {cell.number} is left out: {why}")
            parts.append(f"\n\n# {said[-1]}\n")
        else:
            source, lines = _without_future(cell.source)
            future |= dict.fromkeys(lines)
            parts.append(f"\n\n# %% cell {cell.number}\n{_body(source, cell.only)}")
    begin = BEGIN_BARE if like.bare else BEGIN.format(backend=BACKENDS[like.backend].in_torch)
    begin = (ON_GPU if BACKENDS[like.backend].gpus else "") + begin
    environ = "import os\n\n" if "os." in begin else ""
    futures = "".join(f"{line}\n" for line in future) + "\n" * bool(future)
    head = HEAD.format(first=FIRST, size=like.size, name=name, future=futures, environ=environ, begin=begin)
    text = head + "".join(parts) + END
    try:
        tree = compile(text, name, "exec", ast.PyCF_ONLY_AST)
    except SyntaxError as error:
        raise UsageError(f"the cells cannot be one script: {error.msg} (line {error.lineno} of {name})") from None
    if missing := _unset(tree):
        names = ", ".join(sorted(missing))
        said.append(
            f"the script needs {names}, which none of its cells sets: set it in a %%ranks cell, and export again"
        )
    if any(cell.played for cell in latest):
        said.append("the script runs on your real network: only Ringside plays another one")
    return text, like.size, said


def _last_runs(ran: list[Ran]) -> list[Ran]:
    """The last run of each cell, in the order of these runs."""
    latest: dict[str | int, Ran] = {}
    for cell in ran:
        latest.pop(cell.cell or cell.number, None)
        latest[cell.cell or cell.number] = cell
    return list(latest.values())


def _unfit(cell: Ran, like: Ran) -> str:
    """Why the cell does not go into a script together with `like`; "" if it does."""
    if not cell.ended:
        return "it failed or was stopped"
    if cell.size != like.size:
        return f"it ran on {cell.size} ranks and the last one on {like.size}; a script has one world_size"
    if cell.bare != like.bare:
        return f"it ran {'with' if cell.bare else 'without'} --bare, unlike the last one"
    try:
        compile(cell.source, "", "exec")
    except SyntaxError as error:
        return f"line {(error.lineno or 0) + 1} is IPython syntax, not Python"
    return ""


def _without_future(source: str) -> tuple[str, list[str]]:
    """The cell without its `from __future__ import ...` lines, which must be at the top of a file; and these lines."""
    lines, found = source.splitlines(keepends=True), []
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            found.append(ast.unparse(node))
            _, after = lines[node.lineno - 1], lines[(node.end_lineno or 1) - 1][node.end_col_offset :]
            lines[node.lineno - 1 : node.end_lineno] = [after.lstrip("; ")] if after.strip("; \n") else []
    return "".join(lines), found[::-1]


def _body(source: str, only: list[int] | None) -> str:
    """The cell's lines, with the value of its last expression shown."""
    text = _showing(source.strip("\n") + "\n")
    if only is None:
        return text
    return f"if rank in {set(only)}:\n{_indented(text)}" if ast.parse(text).body else text


def _showing(source: str) -> str:
    """IPython shows the value of a last expression without a semicolon; a script has to print it."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or _prints(last.value):
        return source
    lines = source.encode().splitlines(keepends=True)  # ast counts columns in bytes
    begin = sum(map(len, lines[: last.lineno - 1])) + last.col_offset
    end = sum(map(len, lines[: (last.end_lineno or 1) - 1])) + (last.end_col_offset or 0)
    raw = source.encode()
    if raw[end:].lstrip().startswith(b";"):
        return source
    return (raw[:begin] + b"_show(" + raw[begin:end] + b")" + raw[end:]).decode()


def _prints(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _indented(source: str) -> str:
    """Indented by four, except lines that begin inside a string, which would change the string."""
    strings = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    within = {line for node in strings for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)}
    lines = source.splitlines(keepends=True)
    return "".join(
        line if number in within or not line.strip() else f"    {line}" for number, line in enumerate(lines, 1)
    )


def _unset(tree: ast.AST) -> set[str]:
    """Names that the program reads and never binds."""
    read: set[str] = set()
    bound = GIVEN | set(vars(builtins)) | {"__file__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            if node.name == "*":  # may bind anything
                return set()
            bound.add(node.asname or node.name.partition(".")[0])
        else:
            bound |= _binds(node)
    return read - bound


def _binds(node: ast.AST) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.arg):
        return {node.arg}
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return {node.name} if node.name else set()
    return {node.rest} if isinstance(node, ast.MatchMapping) and node.rest else set()
