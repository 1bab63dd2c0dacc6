"""Where in a cell an error was raised: the line, the expression that failed, the values of its names, the syntax
tree."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from dataclasses import dataclass
from types import FrameType, ModuleType

Node = ast.stmt | ast.expr
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class Place:
    """The student's innermost line."""

    frame: FrameType
    line: int
    node: Node | None  # the failing expression, or the statement if that is what failed
    tree: ast.Module  # the whole cell
    scope: ast.AST  # the function of the line, or the whole cell
    in_this_cell: bool  # not in a function of an earlier cell
    torch_call: FrameType | None  # the frame of the function of torch.distributed that the line called
    innermost: FrameType

    def value(self, name: str):
        """The value of the name there; None if it has none."""
        for variables in (self.frame.f_locals, self.frame.f_globals, vars(builtins)):
            if name in variables:
                return variables[name]
        return None

    def has(self, name: str) -> bool:
        return name in self.frame.f_locals or name in self.frame.f_globals or hasattr(builtins, name)

    def called(self, call: ast.Call):
        """The function that is called, if names and modules lead to it."""
        return resolve(call.func, self.value)


def is_cell(file: str) -> bool:
    """Whether that file is a cell: ipykernel compiles it as /tmp/ipykernel_PID/HASH.py, IPython and exec as <...>."""
    return "ipykernel_" in file or file.startswith(("<ipython-input", "<cell", "<stdin", "<string"))


def line_of(error: BaseException) -> int:
    """The line of the running cell that raised it, or called what raised it; 0 if there is none."""
    entry, cell, line = error.__traceback__, None, 0
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        cell = cell or (file if is_cell(file) else None)
        line = entry.tb_lineno if file == cell else line
        entry = entry.tb_next
    return line


def place_of(error: BaseException) -> Place | None:
    """The innermost line of a cell in the traceback; None if there is none, or the cell cannot be parsed."""
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    own = [i for i, entry in enumerate(entries) if is_cell(entry.tb_frame.f_code.co_filename)]
    if not own:
        return None
    frame, line = entries[own[-1]].tb_frame, entries[own[-1]].tb_lineno
    code = frame.f_code
    tree = parse("".join(linecache.getlines(code.co_filename)))
    if tree is None:
        return None
    inside = [later.tb_frame for later in entries[own[-1] + 1 :]]
    torchs = [f for f in inside if is_torchs(f.f_globals.get("__name__")) and f.f_code.co_name != "wrapper"]
    return Place(
        frame,
        line,
        node_at(tree, list(code.co_positions())[entries[own[-1]].tb_lasti // 2]),
        tree,
        same_scope(tree, code.co_name, line),
        code.co_filename == entries[own[0]].tb_frame.f_code.co_filename,
        next(iter(torchs), None),
        entries[-1].tb_frame,
    )


def node_at(tree: ast.AST, at: tuple) -> Node | None:
    """The node at exactly that position of the source; of an expression and its statement, the expression."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Node) and (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == at
    ]
    return found[-1] if found else None


def resolve(expression: ast.AST, value):
    """The value of a name, or of a dotted name in modules; else None. `value` looks up the first name."""
    if isinstance(expression, ast.Name):
        return value(expression.id)
    if isinstance(expression, ast.Attribute):
        owner = resolve(expression.value, value)
        return getattr(owner, expression.attr, None) if isinstance(owner, ModuleType) else None
    return None


def is_torchs(module: str | None) -> bool:
    return (module or "").startswith("torch.distributed")


def op_of(function) -> str:
    """'recv' for torch.distributed's recv under any name; "" for other functions."""
    return getattr(function, "__name__", "") if is_torchs(getattr(function, "__module__", None)) else ""


def is_tensor(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_reduction(name: str) -> bool:
    """Whether it is a member of dist.ReduceOp."""
    dist = sys.modules.get("torch.distributed")
    return dist is not None and name in getattr(dist.ReduceOp.RedOpType, "__members__", {})


def parse(source: str) -> ast.Module | None:
    """The syntax tree of a cell; None if it is not plain Python."""
    try:
        return compile(source, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError):
        return None


def same_scope(tree: ast.Module, function: str, line: int) -> ast.AST:
    """The function of that name around that line; the whole cell if there is none."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS[:2]) and node.name == function and spans(node, line)
    ]
    return found[-1] if found else tree


def spans(node: Node, line: int) -> bool:
    """Whether the line is one of the node's."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def bindings(scope: ast.AST, name: str) -> list[Node]:
    """The statements and definitions of the scope that set the name, in order, without the bodies of nested
    functions."""
    return [node for node in _of_scope(scope) if isinstance(node, Node) and name in _sets(node)]


def last_set_to(name: str, place: Place) -> ast.AST | None:
    """What the variable was last set to in the function or the cell, also in `a, b = 1, 2`; None if that depends on a
    branch or on the round of a loop."""
    last = last_bound(name, place.scope, place.line)
    (target,), value = (last.targets[:1], last.value) if isinstance(last, ast.Assign) else ((None,), None)
    if isinstance(target, ast.Name):
        return value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return next(v for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name) and t.id == name)
    return None


def last_bound(name: str, block: ast.AST, line: int) -> ast.stmt | None:
    """The statement that set the name last before the line, whichever way the code went; None if there is none."""
    last: ast.stmt | None = None
    while True:
        bodies = [getattr(block, field, None) or () for field in ("body", "orelse", "finalbody")]
        bodies += [handler.body for handler in getattr(block, "handlers", ())]
        inside = next((b for b in bodies if b and b[0].lineno <= line <= (b[-1].end_lineno or 0)), ())
        deeper = None
        for statement in inside:
            if spans(statement, line):
                deeper = statement
                break
            if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and bindings(only(statement), name):
                last = statement
            elif bindings(only(statement), name):
                last = None
        if isinstance(deeper, ast.Match) and bindings(only(deeper), name):
            return None
        if deeper is None or not hasattr(deeper, "body") or isinstance(deeper, FUNCTIONS):
            return last
        if isinstance(deeper, (ast.For, ast.While, ast.With)) and bindings(only(deeper), name):
            last = None
        block = deeper


def only(statement: ast.stmt) -> ast.Module:
    return ast.Module([statement], [])


def bound(tree: ast.AST) -> set[str]:
    """All names that the tree sets outside of functions."""
    nodes = [*_of_scope(tree)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}.union(*map(_sets, nodes))


def deletes(tree: ast.AST, name: str) -> bool:
    """Whether some `del` in the tree names it."""
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del) and n.id == name for n in ast.walk(tree))


def _of_scope(scope: ast.AST):
    """The nodes of the scope in source order, without the bodies of nested functions."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, FUNCTIONS):
            yield from _of_scope(child)


def _sets(node: ast.AST) -> set[str]:
    """The names that a statement or a definition sets."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    targets: list[ast.expr] = []
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.NamedExpr)):
        targets = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    nodes = (inner for target in targets for inner in ast.walk(target))
    return {inner.id for inner in nodes if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}
