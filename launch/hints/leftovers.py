"""What a cell has left behind that a student will stumble over later, below the cell that did it.

A name that every rank begins with and that is something else now; a tensor whose name was given to what a call
returned; a list that has one tensor n times; a `wait` that was not called.

The notebook's kernel checks the code once (`suspicious`). Ranks check again, with the values of its names, only if
something was found (`notes`).

Left out: errors (_calls.py, names.py).
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field

from launch.hints import _calls
from launch.hints.place import FUNCTIONS, bindings, is_tensor, op_of, parse, resolve

BACK = {  # restores the names that every rank begins with
    "rank": "rank = dist.get_rank()",
    "world_size": "world_size = dist.get_world_size()",
    "torch": "import torch",
    "dist": "import torch.distributed as dist",
}
FILLED = {"all_gather": 0, "gather": 1, "all_to_all": 0, "recv": 0, "irecv": 0}  # op -> the argument that it fills
OPS = _calls.BLOCKING | _calls.AT_ONCE | {"batch_isend_irecv"}


@dataclass
class Scope:
    """What matters in a function, or in the cell outside of functions.

    taken     (target, call) of `target = call(...)`; a target as it is written: "x", "pieces[0]"
    printed   calls that are arguments of print
    calls     all calls
    repeated  variable -> the `[item()] * n` that it was set to, and the item
    set       lists of which an item is set
    """

    top: bool
    taken: list[tuple[str, ast.Call]] = field(default_factory=list)
    printed: list[ast.Call] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)
    repeated: dict[str, tuple[ast.BinOp, ast.expr]] = field(default_factory=dict)
    set: set[str] = field(default_factory=set)


def read(tree: ast.Module) -> tuple[list[Scope], list[ast.Attribute]]:
    """The scopes of the cell, and its lines that are a `wait` without a call, in one walk."""
    scopes, waits = [Scope(True)], []

    def walk(parent: ast.AST, scope: Scope | None) -> None:
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == "wait":
                waits.append(node.value)
            elif scope:
                note(node, scope)
            if isinstance(node, FUNCTIONS[:2]):
                scopes.append(inner := Scope(False))
                walk(node, inner)
            else:
                walk(node, None if isinstance(node, FUNCTIONS) else scope)

    def note(node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Call):
            scope.calls.append(node)
            if isinstance(node.func, ast.Name) and node.func.id == "print":
                scope.printed += [arg for arg in node.args if isinstance(arg, ast.Call)]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            scope.set.add(node.value.id)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, (ast.Name, ast.Subscript)) and isinstance(value, ast.Call):
                scope.taken.append((ast.unparse(target), value))
            elif isinstance(target, ast.Name) and (found := repeats(value)) and isinstance(found[1], ast.Call):
                scope.repeated[target.id] = found

    walk(tree, scopes[0])
    return scopes, waits


def repeats(value: ast.expr | None) -> tuple[ast.BinOp, ast.expr] | None:
    """(the expression, item) if it is `[item] * n`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.left, ast.List):
        return (value, value.left.elts[0]) if len(value.left.elts) == 1 else None
    return None


def suspicious(code: str) -> bool:
    """Whether `notes` may find something in this code. It knows no values: what is named like an op counts as one."""
    if (tree := parse(code)) is None:
        return False
    scopes, waits = read(tree)
    last = last_name(tree)
    return bool(waits) or any(
        scope.repeated
        or any(fills(call, name) or (name == last and looks_like_op(call)) for name, call in scope.taken)
        or any(map(looks_like_op, scope.printed))
        or any(repeats(arg) for call in scope.calls if looks_like_op(call) for arg in call.args)
        for scope in scopes
    )


def looks_like_op(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in OPS


def last_name(tree: ast.Module) -> str:
    """The variable that the cell shows in its last line; "" if that is something else."""
    last = tree.body[-1] if tree.body else None
    return last.value.id if isinstance(last, ast.Expr) and isinstance(last.value, ast.Name) else ""


def notes(code: str, namespace: dict, given: dict, before: dict, looked_at: bool) -> list[str]:
    """Sentences about what the cell `code` has left behind. `given` are the names every rank begins with, `before` what
    they were before the cell; `looked_at` is whether the code is `suspicious`."""
    changed = [n for n in given if not is_still(n, namespace, given) and namespace.get(n) is not before.get(n)]
    if not changed and not looked_at:
        return []
    tree = parse(code) or ast.Module([], [])
    found = [changed_name(name, namespace, tree) for name in changed]
    scopes, waits = read(tree)
    for scope in scopes:
        found += lost_tensors(scope, namespace, last_name(tree)) + one_for_all(scope, namespace)
    return found + [f"line {wait.lineno}: {ast.unparse(wait)} without () does not wait" for wait in waits]


def brings_back(name: str) -> str:
    """The line that restores the name, on this rank as it is now."""
    dist = sys.modules.get("torch.distributed")
    if name in ("rank", "world_size") and not (dist and dist.is_initialized()):  # in a bare cell, before it has a group
        return f'import os; {name} = int(os.environ["{name.upper()}"])'
    return BACK[name]


def is_still(name: str, namespace: dict, given: dict) -> bool:
    """Whether the name has its initial value."""
    value = namespace.get(name)
    return value is given[name] or (type(value) is int and value == given[name])


def changed_name(name: str, namespace: dict, tree: ast.AST) -> str:
    back = f"for every later cell too: {brings_back(name)} brings it back"
    if name not in namespace:
        return f"this cell has deleted {name}, {back}"
    loops = [node for node in bindings(tree, name) if isinstance(node, ast.For)]
    other = f"; in the loop of line {loops[0].lineno} use another name, such as peer" if loops else ""
    return f"this cell has changed {name}, {back}{other}"


def lost_tensors(scope: Scope, namespace: dict, last: str) -> list[str]:
    """`x = dist.recv(x, 0)`: x was a tensor and is a number now. `y = dist.all_reduce(x)`, then `y` as the last line;
    `print(dist.all_reduce(x))`. In functions and in items of lists, a target is a tensor unless something else is
    known.
    """
    found = []
    for name, call in scope.taken:
        function = resolve(call.func, namespace.get)
        op, filled = op_of(function), fills(call, name)
        known = scope.top and "[" not in name
        if known and op and name in namespace and _calls.is_what_it_returns(op, call, namespace[name]):
            if filled or (name == last and namespace[name] is None):
                found.append(_calls.returned(call, op, name))
        elif known and not op and filled and function is not None and namespace.get(name, "") is None:
            found.append(f"line {call.lineno}: {name} is None now, which is what {ast.unparse(call.func)} returned")
        elif not known and filled and op in _calls.BLOCKING and _calls.waits(call):
            found.append(_calls.returned(call, op, name))
    for call in scope.printed:
        op = op_of(resolve(call.func, namespace.get))
        from_any = op == "recv" and len(call.args) == 1  # it returns the sender
        if op in _calls.BLOCKING and _calls.waits(call) and not from_any:
            found.append(_calls.returned(call, op))
    return found


def one_for_all(scope: Scope, namespace: dict) -> list[str]:
    """`pieces = [torch.empty(1)] * world_size`, or `[x] * world_size`, that a call fills: n times the same tensor."""
    found = []
    for call in scope.calls:
        at = FILLED.get(op_of(resolve(call.func, namespace.get)))
        filled = call.args[at] if at is not None and at < len(call.args) else None
        whole = filled.value if isinstance(filled, ast.Subscript) else filled
        if isinstance(whole, ast.Name) and whole.id in scope.repeated.keys() - scope.set:
            if not scope.top or is_one_tensor(namespace.get(whole.id)):
                found.append(again_and_again(*scope.repeated[whole.id]))
        elif times := repeats(whole):
            found.append(again_and_again(*times))
    return list(dict.fromkeys(found))


def again_and_again(value: ast.BinOp, item: ast.expr) -> str:
    new = ast.unparse(item) if isinstance(item, ast.Call) else f"torch.empty_like({ast.unparse(item)})"
    each = f"[{new} for _ in range({ast.unparse(value.right)})]"
    return f"line {value.lineno}: {ast.unparse(value)} is the same tensor every time: write {each}"


def is_one_tensor(items) -> bool:
    return isinstance(items, list) and len(items) > 1 and is_tensor(items[0]) and all(i is items[0] for i in items)


def fills(call: ast.Call, name: str) -> bool:
    """Whether the variable, or the item, is the call's first argument."""
    return bool(call.args) and ast.unparse(call.args[0]) == name
