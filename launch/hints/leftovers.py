"""What a cell that came through has left behind, and a student will stumble over in a later one.

A name that every rank begins with and that stands for something else now; a tensor whose name was given to what a call
returned; a `wait` that was not called. Said once, below the cell that did it.

Left out: errors (_calls.py, names.py).
"""

from __future__ import annotations

import ast
import re
import sys

from launch.hints import _calls
from launch.hints.place import assigned_calls, bindings, calls_in, functions, is_tensor, op_of, parse, repeated, resolve

BACK = {  # what brings back the names that every rank begins with
    "rank": "rank = dist.get_rank()",
    "world_size": "world_size = dist.get_world_size()",
    "torch": "import torch",
    "dist": "import torch.distributed as dist",
}
FILLED = {"all_gather": 0, "gather": 1, "all_to_all": 0, "recv": 0, "irecv": 0}  # op -> the argument that it fills
WORTH_READING = re.compile(
    r"(\w+)\s*=\s*[\w.]+\(\s*\1\b|\]\s*\*|"
    rf"[=(]\s*[\w.]*\b({'|'.join(sorted(_calls.BLOCKING | _calls.AT_ONCE))})\(|\.wait\s*$",
    re.MULTILINE,
)


def notes(code: str, namespace: dict, given: dict, before: dict) -> list[str]:
    """Sentences about what the cell `code` has left behind. `given` are the names every rank begins with, `before`
    what they stood for before the cell."""
    changed = [n for n in given if not is_still(n, namespace, given) and namespace.get(n) is not before.get(n)]
    if not changed and not WORTH_READING.search(code):
        return []
    tree = parse(code) or ast.Module([], [])
    found = [changed_name(name, namespace, tree) for name in changed]
    return (
        found
        + lost_tensors(tree, namespace)
        + lost_by_the_code(tree, namespace)
        + one_for_all(tree, namespace)
        + not_waited(tree)
    )


def brings_back(name: str) -> str:
    """The line that gives the name its meaning back, on this rank as it is now."""
    dist = sys.modules.get("torch.distributed")
    if name in ("rank", "world_size") and not (dist and dist.is_initialized()):  # a bare cell, before it has a group
        return f'import os; {name} = int(os.environ["{name.upper()}"])'
    return BACK[name]


def is_still(name: str, namespace: dict, given: dict) -> bool:
    """Whether the name stands for what it stood for in the beginning."""
    value = namespace.get(name)
    return value is given[name] or (type(value) is int and value == given[name])


def changed_name(name: str, namespace: dict, tree: ast.AST) -> str:
    back = f"for every later cell too: {brings_back(name)} brings it back"
    if name not in namespace:
        return f"this cell has deleted {name}, {back}"
    loops = [node for node in bindings(tree, name) if isinstance(node, ast.For)]
    other = f"; in the loop of line {loops[0].lineno} use another name, such as peer" if loops else ""
    return f"this cell has changed {name}, {back}{other}"


def lost_tensors(tree: ast.Module, namespace: dict) -> list[str]:
    """`x = dist.recv(x, 0)`: x was a tensor, and is a number now. Or `y = dist.all_reduce(x)` with y as the last line,
    which shows nothing."""
    last = tree.body[-1].value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    found = []
    for name, call in assigned_calls(tree):
        function = resolve(call.func, namespace.get)
        op = op_of(function)
        if not op and fills(call, name) and function is not None and namespace.get(name, "") is None:
            found.append(f"line {call.lineno}: {name} is None now, which is what {ast.unparse(call.func)} returned")
        if not op or name not in namespace or not _calls.is_what_it_returns(op, call, namespace[name]):
            continue
        shown = isinstance(last, ast.Name) and last.id == name and namespace[name] is None
        if fills(call, name) or shown:
            found.append(_calls.returned(call, op, name))
    return found


def lost_by_the_code(tree: ast.Module, namespace: dict) -> list[str]:
    """The same in the functions that the cell defines and in items of lists, where x is a tensor as long as nothing
    else is known; and None printed."""
    scopes = [tree, *functions(tree)]
    given = [pair for scope in scopes for pair in assigned_calls(scope) if scope is not tree or "[" in pair[0]]
    taken = [(call, name) for name, call in given if fills(call, name)]
    printing = [call for scope in scopes for call in calls_in(scope) if ast.unparse(call.func) == "print"]
    taken += [(arg, "") for call in printing for arg in call.args if isinstance(arg, ast.Call)]
    found = []
    for call, name in taken:
        op = op_of(resolve(call.func, namespace.get))
        from_any = op == "recv" and len(call.args) == 1 and not name  # whose return value is news
        if op in _calls.BLOCKING and _calls.waits(call) and not from_any:
            found.append(_calls.returned(call, op, name))
    return found


def one_for_all(tree: ast.Module, namespace: dict) -> list[str]:
    """`pieces = [torch.empty(1)] * world_size`, or `[x] * world_size`, to be filled by a call: the piece that comes
    last is all there is."""
    found = []
    for scope in (tree, *functions(tree)):
        known = repeated(scope)
        for call in calls_in(scope):
            at = FILLED.get(op_of(resolve(call.func, namespace.get)))
            filled = call.args[at] if at is not None and at < len(call.args) else None
            whole = filled.value if isinstance(filled, ast.Subscript) else filled
            if isinstance(whole, ast.Name) and whole.id in known:
                value, item = known[whole.id]
                if scope is not tree or is_one_tensor(namespace.get(whole.id)):
                    found.append(again_and_again(value, item))
            elif isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Mult) and isinstance(whole.left, ast.List):
                found += [again_and_again(whole, item) for item in whole.left.elts if len(whole.left.elts) == 1]
    return list(dict.fromkeys(found))


def again_and_again(value: ast.BinOp, item: ast.expr) -> str:
    new = ast.unparse(item) if isinstance(item, ast.Call) else f"torch.empty_like({ast.unparse(item)})"
    each = f"[{new} for _ in range({ast.unparse(value.right)})]"
    return f"line {value.lineno}: {ast.unparse(value)} is one tensor again and again: write {each}"


def is_one_tensor(items) -> bool:
    return isinstance(items, list) and len(items) > 1 and is_tensor(items[0]) and all(i is items[0] for i in items)


def fills(call: ast.Call, name: str) -> bool:
    """Whether the variable, or the item, is what the call fills."""
    return bool(call.args) and ast.unparse(call.args[0]) == name


def not_waited(tree: ast.Module) -> list[str]:
    """`work.wait` as a line of its own."""
    return [
        f"line {node.lineno}: {ast.unparse(node.value)} without () does not wait"
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == "wait"
    ]
