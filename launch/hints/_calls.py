"""Rules about calls of torch.distributed: what they return, what they take, which rank they address.

Left out: names that lead nowhere (names.py).
"""

from __future__ import annotations

import ast
import inspect
import sys

from launch.hints.place import Place, bindings, is_reduction, is_tensor, last_set_to, op_of

FORMS = {
    "send": "dist.send(x, 1): the tensor, and the rank that gets it",
    "isend": "dist.isend(x, 1): the tensor, and the rank that gets it",
    "recv": "dist.recv(x, 0): the tensor to fill, and the rank it comes from",
    "irecv": "dist.irecv(x, 0): the tensor to fill, and the rank it comes from",
    "broadcast": "dist.broadcast(x, src=0): the tensor, and the rank that has it",
    "reduce": "dist.reduce(x, dst=0): the tensor, and the rank that gets the sum",
    "all_reduce": "dist.all_reduce(x): the tensor, which holds the sum afterwards",
    "all_gather": "dist.all_gather(pieces, x): a list with a tensor to fill for each rank, and the tensor of this rank",
    "gather": "dist.gather(x, pieces, dst=0): pieces is a list of tensors on that rank and None on the others",
    "scatter": "dist.scatter(piece, pieces, src=0): pieces is a list of tensors on that rank and None on the others",
    "reduce_scatter": "dist.reduce_scatter(piece, pieces): a tensor to fill, and a list with a tensor for each rank",
    "P2POp": "dist.P2POp(dist.isend, x, 1): dist.isend or dist.irecv, the tensor, and the other rank",
    "all_to_all": "dist.all_to_all(arriving, leaving): two lists with a tensor for each rank, the one to fill first",
}
SINGLE = {name: f"{name}_single" for name in ("all_gather", "reduce_scatter", "all_to_all")}
OBJECTS = {
    "send": "send_object_list",
    "recv": "recv_object_list",
    "broadcast": "broadcast_object_list",
    "scatter": "scatter_object_list",
    "gather": "gather_object",
    "all_gather": "all_gather_object",
}
PIECES = {  # the argument with a piece for each rank, and the one that is as long as a piece
    "scatter": ("scatter_list", "tensor"),
    "gather": ("gather_list", "tensor"),
    "all_gather": ("tensor_list", "tensor"),
    "reduce_scatter": ("input_list", "output"),
    "all_gather_single": ("output_tensor", "input_tensor"),
    "all_gather_into_tensor": ("output_tensor", "input_tensor"),
    "reduce_scatter_single": ("input", "output"),
    "reduce_scatter_tensor": ("input", "output"),
}
TO_FILL = "[torch.empty_like(x) for _ in range(world_size)]"
LISTS = {  # the argument that is a list with an item for each rank, and how to make one that the call fills
    "all_gather": ("tensor_list", TO_FILL),
    "gather": ("gather_list", TO_FILL),
    "all_gather_object": ("object_list", "[None] * world_size"),
    "gather_object": ("object_gather_list", "[None] * world_size"),
    "scatter": ("scatter_list", ""),
    "scatter_object_list": ("scatter_object_input_list", ""),
    "reduce_scatter": ("input_list", ""),
}
OF_TORCH = "op is one of torch's, such as op=dist.ReduceOp.SUM"
ROOT = {"gather": "dst", "gather_object": "dst", "scatter": "src", "scatter_object_list": "src"}  # who has that list
SAME_DTYPE = "both tensors must have the same dtype: torch.empty(..., dtype=x.dtype) makes one with that of x"
IN_PLACE = {"all_reduce", "broadcast", "reduce"}
NO_RESULT = {"send", "barrier", "gather"}  # nothing that arrives is in their first argument
AT_ONCE = {"isend", "irecv"}
REFUSING = {"_check_op": "P2POp", "_check_p2p_op_list": "P2POp"}  # what torch checks with -> what was to be given
BLOCKING = (
    {*FORMS, *SINGLE.values(), "barrier", "all_gather_into_tensor", "reduce_scatter_tensor"} - AT_ONCE - {"P2POp"}
)


# The return value, mistaken for the data


def returned(call: ast.Call, op: str, target: str = "") -> str:
    """The sentence about a call whose return value is not the data; `target` is the variable that got the value."""
    first = next((k.value for k in call.keywords if k.arg in ("tensor", "output", "tensor_list")), None)
    first = call.args[0] if call.args else first
    text, data = f"dist.{op}", "" if first is None or op in NO_RESULT else ast.unparse(first)
    data = data if isinstance(first, (ast.Name, ast.Subscript, ast.Attribute)) else data and "the tensor it was given"
    same = target and first is not None and target == ast.unparse(first)
    instead = f": write {ast.unparse(call)} without {target} =" if same else ""
    if op == "batch_isend_irecv":
        return f"line {call.lineno}: {text} returns a list of handles: wait() for each of them"
    if op in AT_ONCE:
        what = f"; what comes is in {data} after its wait()" if op == "irecv" else ""
        rename = ": give it another name" if same else ""
        return f"line {call.lineno}: {text} returns a handle to wait for{what}{rename}"
    if op == "recv":
        return f"line {call.lineno}: {text} returns the number of the sender; what came is in {data}{instead}"
    where = f"; the result is in {data}{', which it changes in place' if op in IN_PLACE else ''}" if data else ""
    return f"line {call.lineno}: {text} returns None{where}{instead}"


def is_what_it_returns(op: str, call: ast.Call, value) -> bool:
    """Whether the value can have come from that call of torch.distributed."""
    if op == "recv":
        return type(value) is int
    if op == "batch_isend_irecv":
        return type(value) is list
    if op in AT_ONCE:
        return hasattr(value, "wait") and not is_tensor(value)
    return op in BLOCKING and waits(call) and value is None


def waits(call: ast.Call) -> bool:
    return not any(keyword.arg == "async_op" for keyword in call.keywords)


def origin(expression: ast.AST, place: Place) -> tuple[ast.Call, str] | None:
    """(call, variable) if the expression is a call, or a variable that was last set to what a call returned."""
    if isinstance(expression, ast.Call):
        return expression, ""
    if not isinstance(expression, ast.Name):
        return None
    every = bindings(place.scope, expression.id)
    before = [node for node in every if node.lineno <= place.line] or every  # or further down in a loop
    last = max(before, key=lambda node: node.lineno, default=None)
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.value, ast.Call):
        return last.value, expression.id
    return None


def took_the_return_value(error, place: Place) -> str:
    """`y = dist.recv(x, 0)`, then `y.sum()`: y is a number; `launch.pull("x").sum()`: a list."""
    if not isinstance(error, (AttributeError, TypeError)):
        return ""
    attribute = getattr(error, "name", None) or ""
    if hasattr(getattr(error, "obj", None), "wait") and not hasattr(sys.modules["torch"].Tensor, attribute):
        return ""  # `handle.wiat()`: not meant as a tensor
    for operand in operands(place):
        if (found := origin(operand, place)) is None:
            continue
        call, target = found
        function = place.called(call)
        value = place.value(target) if target else getattr(error, "obj", None)
        if (op := op_of(function)) and is_what_it_returns(op, call, value):
            return returned(call, op, target)
        name = (getattr(function, "__module__", ""), getattr(function, "__name__", ""))
        if name == ("launch", "pull") and type(value) is list:
            return f"line {call.lineno}: launch.pull returns a list with the value of every rank; [0] is rank 0's"
    return ""


def put_into_a_list(error, place: Place) -> str:
    """`pieces.append(dist.recv(torch.empty(4), src))`, then `torch.cat(pieces)`: pieces has numbers, or handles."""
    if not isinstance(error, TypeError) or not isinstance(place.node, ast.Call):
        return ""
    for name in {node.id for arg in place.node.args for node in ast.walk(arg) if isinstance(node, ast.Name)}:
        items = place.value(name)
        strangers = [item for item in items if not is_tensor(item)] if isinstance(items, list) else []
        for call in put_into(name, place.scope) if strangers else ():
            op = op_of(place.called(call))
            if op and is_what_it_returns(op, call, strangers[0]):
                return f"{returned(call, op)}: keep that tensor in {name} instead"
    return ""


def put_into(name: str, scope: ast.AST) -> list[ast.Call]:
    """The calls whose values are put into the list: by append, by +=, or where it is made."""
    found: list[ast.expr] = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.append":
            found += node.args
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
            if ast.unparse(target) == name and isinstance(node.value, ast.ListComp):
                found.append(node.value.elt)
            elif ast.unparse(target) == name and isinstance(node.value, ast.List):
                found += node.value.elts
    return [value for value in found if isinstance(value, ast.Call)]


def operands(place: Place) -> list[ast.AST]:
    """The operands of the failing expression that may be of the wrong kind."""
    node = place.node
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return [node.value]
    if isinstance(node, ast.BinOp):
        found = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        found = [node.target, node.value]
    elif isinstance(node, ast.Call):
        found = [item for arg in node.args for item in (arg.elts if isinstance(arg, (ast.List, ast.Tuple)) else [arg])]
    else:
        return []
    # a number has its place in sums and calls, so that only None is out of place there for certain
    return [item for item in found if isinstance(item, ast.Name) and place.value(item.id) is None]


# What it takes


def argument_of_another_kind(error, place: Place) -> str:
    """`dist.send({"a": 1}, 1)`, `dist.send(1, x)`, `dist.recv(0)`, `dist.all_gather(x, x)`."""
    call, frame = place.node, place.torch_call
    op = frame.f_code.co_name if frame is not None else ""
    if place.innermost.f_code.co_name in REFUSING and frame is not None:
        return FORMS[REFUSING[place.innermost.f_code.co_name]]
    if frame is None or op not in BLOCKING | AT_ONCE or not isinstance(call, ast.Call):
        return ""
    given, innermost = frame.f_locals, place.innermost
    if op == "all_gather" and is_tensor(given["tensor_list"]) and not is_tensor(given["tensor"]):
        return FORMS[op]
    if "tensor" in given and not is_tensor(given["tensor"]) and isinstance(error, (TypeError, RuntimeError)):
        if is_tensor(given.get("dst", given.get("src"))) and len(call.args) == 2:
            first, second = map(ast.unparse, call.args)
            return f"the tensor comes first: dist.{op}({second}, {first})"
        if call.args and (found := origin(call.args[0], place)):
            call_before, target = found
            before = op_of(place.called(call_before))
            if before and is_what_it_returns(before, call_before, given["tensor"]):
                return returned(call_before, before, target)
        if given["tensor"] is None:
            what = ast.unparse(call.args[0]) if call.args else "the tensor"
            if what.endswith(".grad"):
                sets = "backward() sets it, for parameters that the loss depends on, and zero_grad() takes it away"
                return f"{what} is None here: {sets}"
            return f"{what} is None here: is it what a call returned that returns nothing?"
        return not_a_tensor(op, given["tensor"], next(iter(call.args), None))
    if op in ("scatter", "gather") and is_tensor(given.get(f"{op}_list")):
        return FORMS[op]
    if sizes := sizes_that_differ(op, given):
        return sizes
    if innermost.f_code.co_name == "_ensure_all_tensors_same_dtype":
        return SAME_DTYPE
    if innermost.f_code.co_name == "_check_tensor_list" and is_tensor(innermost.f_locals.get("param")):
        single = f"; for one tensor that holds all pieces there is dist.{SINGLE[op]}" if op in SINGLE else ""
        return f"{FORMS.get(op, f'dist.{op} takes a list of tensors there')}{single}"
    refused = innermost.f_code.co_name in ("_check_single_tensor", "_validate_output_list_for_rank")
    refused = refused or (innermost is frame and op in ("scatter", "gather"))
    return FORMS.get(op, "") if refused and isinstance(error, (TypeError, ValueError)) else ""


def list_of_objects(error, place: Place) -> str:
    """`dist.broadcast_object_list("hello", src=0)`: every rank but 0 has to put it somewhere."""
    frame = place.torch_call
    op = frame.f_code.co_name if frame is not None else ""
    given = frame.f_locals.get("object_list", []) if frame is not None else []
    if op != "broadcast_object_list" or isinstance(given, list) or not isinstance(error, (TypeError, RuntimeError)):
        return ""
    return "dist.broadcast_object_list(box, src=0): box is a list, [obj] on that rank and [None] on the others"


def list_for_each_rank(error, place: Place) -> str:
    """`pieces = []`, then `dist.all_gather(pieces, x)`; `pieces` is a tuple, or is filled with None."""
    frame, dist = place.torch_call, sys.modules.get("torch.distributed")
    if dist is None or frame is None:
        return ""
    name, makes = LISTS.get(frame.f_code.co_name, ("", ""))
    given = frame.f_locals.get(name)
    if not isinstance(given, (list, tuple)):
        return ""
    op, group = frame.f_code.co_name, frame.f_locals.get("group")
    ranks = dist.get_world_size(group)
    if op in ROOT and not is_root(frame.f_locals, ROOT[op], group):
        return ""
    makes = makes.replace("world_size", "world_size" if ranks == dist.get_world_size() else str(ranks))
    makes = f": {makes} makes one" if makes else ""
    if len(given) != ranks:
        items = "item" if "object" in op else "tensor"
        return f"dist.{op} needs a list with one {items} for each of {ranks} ranks, and got {len(given)}{makes}"
    if isinstance(given, tuple) and isinstance(error, TypeError):
        return f"dist.{op} needs a list, and got a tuple: list(...) makes a list of it"
    empty = makes and "object" not in op and None in given
    return f"dist.{op} fills the tensors that you pass in, and this list holds None{makes}" if empty else ""


def is_root(given: dict, side: str, group) -> bool:
    """Whether this rank is the one that gathers or scatters."""
    dist = sys.modules["torch.distributed"]
    within = given.get(f"group_{side}")
    return dist.get_rank(group) == within if within is not None else dist.get_rank() == (given.get(side) or 0)


def sizes_that_differ(op: str, given: dict) -> str:
    """A list or tensor with a piece for each rank, and a tensor that is not as long as a piece."""
    if op not in PIECES:
        return ""
    pieces, one = (given[name] for name in PIECES[op])
    if op.endswith(("_single", "_tensor")) and is_tensor(pieces) and is_tensor(one):
        return whole_and_piece(op, pieces, one, given["group"])
    if not isinstance(pieces, list) or not all(map(is_tensor, pieces)) or not is_tensor(one):
        return ""
    if any(map(made_real, [*pieces, one])):
        return ""
    other = {piece.numel() for piece in pieces} - {one.numel()}
    return (
        f"the tensor has {one.numel()} elements and a piece of the list {min(other)}: make them equal" if other else ""
    )


def made_real(tensor) -> bool:
    """Whether torch has made it of complex numbers: it has twice as many numbers as what the student gave."""
    return tensor._is_view() and tensor._base.is_complex()


def whole_and_piece(op: str, whole, piece, group) -> str:
    """For a call that takes one tensor with a piece for each rank, and one piece."""
    if made_real(whole) or made_real(piece):
        return ""
    ranks = sys.modules["torch.distributed"].get_world_size(group)
    first, second = ("first", "second") if op.startswith("all_gather") else ("second", "first")
    if whole.numel() != ranks * piece.numel():
        return (
            f"the {first} tensor must hold a piece as long as the {second} for each of {ranks} ranks, "
            f"{ranks * piece.numel()} elements, and has {whole.numel()}"
        )
    if whole.dtype != piece.dtype:
        return SAME_DTYPE
    below = (ranks * piece.shape[0], *piece.shape[1:]) if piece.dim() else whole.shape
    if whole.shape == below:
        return ""
    view = f": view{plain(below)} gives it that" if whole.is_contiguous() else ""
    return (
        f"the {first} tensor has the shape {plain(whole.shape)}; pieces like the {second}, one below the other, have "
        f"{plain(below)}{view}"
    )


def plain(shape) -> str:
    """(12), (6, 2): as the arguments of view."""
    return f"({', '.join(map(str, shape))})"


def not_a_tensor(op: str, value, argument: ast.AST | None) -> str:
    """The sentence about a value that is not a tensor, and is that argument."""
    name = argument.id if isinstance(argument, ast.Name) else ""
    text = ast.unparse(argument) if isinstance(argument, (ast.Name, ast.Attribute)) else ""
    kind = type(value).__name__
    kind = f"{'an' if kind[0] in 'aeiouAEIOU' or kind == 'ndarray' else 'a'} {kind}"
    plain = op.removeprefix("i") if op in AT_ONCE else op
    if plain == "recv" and isinstance(value, (list, tuple)) and value and all(map(is_tensor, value)):
        return f"dist.{op} fills one tensor, and got {kind} of them: give it the one that this message belongs in"
    if plain == "recv":
        return f"dist.{op} fills a tensor that you pass in, and got {kind}: x = torch.empty(4), then dist.{op}(x, 0)"
    if inspect.isroutine(value) and text:
        return f"dist.{op} takes a tensor, and got a function: {text}() calls it"
    if hasattr(value, "parameters"):
        return f"dist.{op} takes a tensor, and got {kind}: call it for each of {name or 'model'}.parameters()"
    if isinstance(value, (bool, int, float)):
        got = f"{name}, a number" if name else f"the number {value!r}"
        return f"dist.{op} takes a tensor, and got {got}: torch.tensor([{name or repr(value)}]) makes one"
    if isinstance(value, (list, tuple)) and value and all(map(is_tensor, value)):
        stack = "torch.stack makes one, or call it" if len({item.shape for item in value}) == 1 else "call it"
        return f"dist.{op} takes one tensor, and got {kind} of them: {stack} for each"
    what = f"dist.{op} takes one tensor, and got {kind}: numbers become one with torch.tensor(...)"
    return what + (f", anything else goes with dist.{OBJECTS[plain]}" if plain in OBJECTS else "")


def call_that_does_not_fit(error, place: Place) -> str:
    """`dist.recv(src=0)`: an argument is missing, or there is one too many; `dist.reduce(x)`: which rank?"""
    call = place.node
    if not isinstance(call, ast.Call):
        return ""
    function = place.called(call)
    op = op_of(function)
    if (
        function is None
        or op not in FORMS
        or any(isinstance(arg, ast.Starred) for arg in call.args)
        or not all(k.arg for k in call.keywords)
    ):
        return ""
    try:
        bound = inspect.signature(function).bind(*call.args, **{k.arg: None for k in call.keywords if k.arg}).arguments
    except TypeError:
        return FORMS[op] if isinstance(error, TypeError) else ""
    nobody = not {"src", "dst", "group_src", "group_dst"} & {*bound}
    return FORMS[op] if nobody and place.innermost.f_code.co_name == "_canonicalize_group_rank" else ""


def reduce_op(error, place: Place) -> str:
    """`op="sum"`."""
    op = place.torch_call.f_locals.get("op") if place.torch_call is not None else None
    if op is None or type(op).__module__.startswith("torch") or not isinstance(error, TypeError):
        return ""
    name = (op if isinstance(op, str) else getattr(op, "__name__", "")).upper()
    name = {"MEAN": "AVG", "AVERAGE": "AVG", "PROD": "PRODUCT"}.get(name, name)
    return f"op is one of torch's: op=dist.ReduceOp.{name}" if is_reduction(name) else OF_TORCH


def group(error, place: Place) -> str:
    """No process group, or one already; a rank's number, or a list of them, in place of a group."""
    given = place.torch_call.f_locals.get("group") if place.torch_call is not None else None
    function = place.called(place.node) if isinstance(place.node, ast.Call) else None
    public = getattr(function, "__module__", "") == "torch.distributed.distributed_c10d"
    op = op_of(function)
    none = sys.modules["torch.distributed"].GroupMember.NON_GROUP_MEMBER if public else None
    if isinstance(given, int) and given == none:
        return f"this rank is not in the group that dist.{op} is given: leave this rank out"
    if public and isinstance(given, (int, list, tuple)) and may_lack_a_group(function):
        tag = f" (a tag is tag={given})" if op in ("send", "recv", "isend", "irecv") else ""
        instead = f"leave it out to mean all ranks{tag}"
        if not isinstance(given, int):
            instead = f"g = dist.new_group({given}) on every rank makes one, then group=g"
        return f"the group of dist.{op} is {given} here, which is not a group: {instead}"
    if not isinstance(error, ValueError):
        return ""
    if str(error).startswith("trying to initialize the default process group twice"):
        return "every rank has a process group already: leave out this call, or have none made with %%ranks --bare"
    missing = place.innermost.f_code.co_name == "_get_default_group"
    return 'there is no process group: dist.init_process_group("gloo") on every rank makes one' if missing else ""


def may_lack_a_group(function) -> bool:
    parameter = inspect.signature(function).parameters.get("group")
    return parameter is not None and parameter.default is not inspect.Parameter.empty


# The peer


def wrong_peer(error, place: Place) -> str:
    """A peer that is the rank itself or does not exist: `rank + 1` on the last rank, `dist.recv(x, 0)` on rank 0."""
    call, frame, dist = place.node, place.torch_call, sys.modules.get("torch.distributed")
    if frame is None or dist is None or not isinstance(call, ast.Call):
        return ""
    op = op_of(place.called(call))
    if op not in ("send", "recv", "isend", "irecv") or not dist.is_initialized():
        return ""
    side = "dst" if "send" in op else "src"
    given, group = frame.f_locals.get(side), frame.f_locals.get("group")
    if type(given) is not int or group not in (None, dist.group.WORLD):
        return ""
    own, size = dist.get_rank(), dist.get_world_size()
    expression: ast.AST | None = next((k.value for k in call.keywords if k.arg == side), None)
    expression = call.args[1] if expression is None and len(call.args) > 1 else expression
    wrote = expression
    if isinstance(expression, ast.Name):
        expression = last_set_to(expression.id, place) or expression
    text = ast.unparse(expression) if expression is not None else ""
    if given == own and isinstance(expression, ast.Constant):
        does = "send to" if side == "dst" else "receive from"
        return f"a rank cannot {does} itself, and this line runs here too: leave this rank out with if rank != {own}"
    if given == own and wrote is not None:
        worked_out = f", worked out as {text}" if expression is not wrote else ""
        return f"{ast.unparse(wrote)} is the rank itself here{worked_out}: copy its own data, without a message"
    if isinstance(expression, ast.BinOp) and isinstance(expression.right, ast.BinOp) and not 0 <= given < size:
        if isinstance(expression.right.op, ast.Mod) and isinstance(expression.op, (ast.Add, ast.Sub)):
            sign = "+" if isinstance(expression.op, ast.Add) else "-"
            inner = f"{ast.unparse(expression.left)} {sign} {ast.unparse(expression.right.left)}"
            return (
                f"% comes before {sign}, so {text} is {given} here: ({inner}) % {ast.unparse(expression.right.right)}"
            )
    left_out = ""
    beside = expression if isinstance(expression, ast.BinOp) and ast.unparse(expression.left) == "rank" else None
    if beside is None or place.value("rank") != own:
        return ""
    if isinstance(beside.op, ast.Add) and given >= size:
        left_out = f"leave out the end of the row with if {text} < world_size"
    elif isinstance(beside.op, ast.Sub) and given < 0:
        left_out = f"leave out the beginning of the row with if {text} >= 0"
    return left_out and f"{text} is {given} here: {left_out}, or close the ring with ({text}) % world_size"


RULES = (
    took_the_return_value,
    put_into_a_list,
    argument_of_another_kind,
    group,
    list_of_objects,
    list_for_each_rank,
    wrong_peer,
    reduce_op,
    call_that_does_not_fit,
)
