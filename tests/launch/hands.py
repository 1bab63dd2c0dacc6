"""Collectives written by hand, as students write them, and what goes wrong in them, for `tests.launch.search`.

`written(rng, p, name)` gives a right program. A text below becomes one by choosing among `<<this | that>>`, and by
writing out four lines: `SWAP a -> r; b <- q` (send a to r and receive b from q, in one of the ways that exist),
`ADD a, b` (in place), `SUM a, b` (in any way) and `COPY a, b`. `wrong(rng, body)` changes one line of a program: mostly
after its last message, sometimes before the first or in between, on all ranks, on one, or in one round of a loop.

Whether a changed program is still right, and whether it ends at all, is not known here.
"""

import ast
import re
from typing import NamedTuple

HEAD = "p, n, root = {p}, {n}, {root}\nothers = [r for r in range(p) if r != rank]\n"

DATA = {
    "ints": "torch.manual_seed({seed} + rank); x = torch.randint(1, 10**6, (p * n,))",
    "floats": "torch.manual_seed({seed} + rank); x = torch.randn(p * n)",
    "origin": "x = torch.arange(p * n) + 100. * rank",
    "int64": "x = torch.arange(p * n) + 10 * rank",
    "ones": "x = torch.ones(p * n)",
    "rank": "x = torch.ones(p * n) * rank",
    "zeros": "x = torch.zeros(p * n)",
    "one-hot": "x = torch.zeros(p * n); x[rank] = 1",
    "nan": "torch.manual_seed({seed} + rank); x = torch.randn(p * n); x[0] = torch.nan",
}

PROGRAMS = {
    "broadcast flat": """
y = <<x | x.clone() | x.clone() if rank == root else torch.zeros_like(x)>>
if rank == root:
    <<for r in others: dist.send(y, r)
    | for w in [dist.isend(y, r) for r in others]: w.wait()>>
else:
    dist.recv(y, root)
""",
    "broadcast flat, scratch": """
if rank == root:
    y = <<x | x.clone()>>
    for r in others:
        dist.send(x, r)
else:
    got = torch.empty_like(x)
    <<dist.recv(got, root) | dist.irecv(got, root).wait()>>
    y = <<got | got.clone()>>
""",
    "broadcast binomial": """
v = (rank - root) % p
y = <<x.clone() | x | x.clone() if rank == root else torch.empty_like(x)>>
for k in (1, 2, 4):
    if v < k and v + k < p:
        dist.send(y, (rank + k) % p)
    elif k <= v < 2 * k:
        dist.recv(y, (rank - k) % p)
""",
    "broadcast, chain": """
v, y = (rank - root) % p, <<x.clone() | x>>
<<for b in [y]: | for b in y.chunk(p):>>
    if v > 0:
        dist.recv(b, (rank - 1) % p)
    if v < p - 1:
        dist.send(b, (rank + 1) % p)
""",
    "scatter flat": """
y = torch.<<empty | zeros>>(n, dtype=x.dtype)
if rank == root:
    for r in others:
        dist.send(x[r * n:(r + 1) * n], r)
    <<y = x[rank * n:(rank + 1) * n].clone() | COPY y, x[rank * n:(rank + 1) * n]>>
else:
    dist.recv(y, root)
""",
    "scatter flat, list": """
y = torch.zeros(n, dtype=x.dtype)
if rank == root:
    c = <<list(x.chunk(p)) | [part.clone() for part in x.chunk(p)]>>
    works = [dist.isend(c[r], r) for r in others]
    for w in works: w.wait()
    <<y = c[rank] | y = c[rank].clone() | COPY y, c[rank]>>
else:
    b = torch.empty_like(y)
    dist.recv(b, root)
    <<y = b | COPY y, b>>
""",
    "scatter binomial, 2 4": """
b = x.clone() if rank == 0 else torch.empty_like(x)
for k in (4, 2, 1):
    if k < p and rank % (2 * k) == 0:
        dist.send(b[(rank + k) * n:(rank + 2 * k) * n], rank + k)
    elif k < p and rank % (2 * k) == k:
        dist.recv(b[rank * n:(rank + k) * n], rank - k)
y = b[rank * n:(rank + 1) * n]<< | .clone()>>
""",
    "gather flat, list": """
x = x[:n].clone()
y = <<[torch.empty_like(x) for _ in range(p)] | [torch.empty_like(x) for _ in range(p)] if rank == root else [x]>>
if rank == root:
    <<y[rank] = x | y[rank] = x.clone() | COPY y[rank], x>>
    <<for r in others: dist.recv(y[r], r)
    | for w in [dist.irecv(y[r], r) for r in others]: w.wait()>>
else:
    dist.send(x, root)
""",
    "gather flat, every rank's own list": """
x = x[:n].clone()
y = [torch.<<empty_like | zeros_like>>(x) for _ in range(p)]
<<y[rank] = x | y[rank] = x.clone() | COPY y[rank], x>>
if rank == root:
    for r in others: dist.recv(y[r], r)
else:
    dist.send(<<x | y[rank]>>, root)
""",
    "gather flat, own put last": """
x = x[:n].clone()
y = [torch.empty_like(x) for _ in range(p)]
for r in range(p):
    if rank == root and r != root:
        dist.recv(y[r], r)
    elif rank == r and r != root:
        dist.send(x, root)
if rank == root:
    <<y[root] = x | y[root] = x.clone() | COPY y[root], x>>
""",
    "gather flat, one tensor": """
x = x[:n].clone()
if rank == root:
    y = torch.<<zeros | empty>>(p * n, dtype=x.dtype)
    COPY y[rank * n:(rank + 1) * n], x
    for r in others:
        dist.recv(y[r * n:(r + 1) * n], r)
else:
    dist.send(x, root)
""",
    "gather flat, cat": """
x = x[:n].clone()
if rank == root:
    parts = []
    for r in range(p):
        if r == root:
            parts.append(x)
        else:
            b = torch.empty_like(x)
            dist.recv(b, r)
            parts.append(b)
    y = torch.<<cat | stack>>(parts)
else:
    dist.send(x, root)
""",
    "gather binomial, 2 4": """
x = x[:n].clone()
b = torch.zeros(p * n, dtype=x.dtype)
COPY b[rank * n:(rank + 1) * n], x
for k in (1, 2, 4):
    if k < p and rank % (2 * k) == 0:
        dist.recv(b[(rank + k) * n:(rank + 2 * k) * n], rank + k)
    elif k < p and rank % (2 * k) == k:
        dist.send(b[rank * n:(rank + k) * n], rank - k)
y = b
""",
    "reduce flat, scratch": """
if rank == root:
    y = <<x.clone() | x>>
    b = torch.empty_like(x)
    for r in others:
        dist.recv(b, r)
        SUM y, b
else:
    dist.send(<<x | x.clone()>>, root)
""",
    "reduce flat, parts": """
if rank == root:
    parts = [torch.empty_like(x) for _ in others]
    <<for b, r in zip(parts, others): dist.recv(b, r)
    | for w in [dist.irecv(b, r) for b, r in zip(parts, others)]: w.wait()>>
    y = x.clone()
    for b in parts:
        SUM y, b
else:
    dist.send(x, root)
""",
    "reduce flat, from nothing, sum only": """
parts = [torch.zeros_like(x) for _ in range(p)]
if rank == root:
    for r in others:
        dist.recv(parts[r], r)
    <<parts[root] = x | COPY parts[root], x>>
    <<y = sum(parts)
    | y = torch.stack(parts).sum(0)
    | y = torch.zeros_like(x)
    for b in parts: y += b>>
else:
    dist.isend(x, root).wait()
""",
    "reduce binomial": """
v = (rank - root) % p
y, b = x.clone(), torch.empty_like(x)
for k in (4, 2, 1):
    if v < k and v + k < p:
        dist.recv(b, (rank + k) % p)
        SUM y, b
    elif k <= v < 2 * k:
        dist.send(y, (rank - k) % p)
""",
    "reduce, chain": """
v, y = (rank - root) % p, <<x.clone() | x>>
if v < p - 1:
    b = torch.empty_like(x)
    dist.recv(b, (rank + 1) % p)
    SUM y, b
if v > 0:
    dist.send(y, (rank - 1) % p)
""",
    "all_gather exchange, list": """
x = x[:n].clone()
y = [torch.<<empty_like | zeros_like>>(x) for _ in range(p)]
<<y[rank] = x | y[rank] = x.clone() | COPY y[rank], x>>
works = [dist.isend(x, r) for r in others]
works += [dist.irecv(y[r], r) for r in others]
for w in works: w.wait()
<< | y = torch.cat(y) | y = torch.stack(y)>>
""",
    "all_gather exchange, one tensor": """
x = x[:n].clone()
y = torch.<<zeros | empty>>(p * n, dtype=x.dtype)
<<COPY y[rank * n:(rank + 1) * n], x
works = [dist.isend(x, r) for r in others] + [dist.irecv(y[r * n:(r + 1) * n], r) for r in others]
for w in works: w.wait()
| works = [dist.isend(x, r) for r in others] + [dist.irecv(y[r * n:(r + 1) * n], r) for r in others]
for w in works: w.wait()
COPY y[rank * n:(rank + 1) * n], x>>
""",
    "all_gather ring, list": """
x = x[:n].clone()
y = [torch.empty_like(x) for _ in range(p)]
<<y[rank] = x | y[rank] = x.clone() | COPY y[rank], x>>
for s in range(p - 1):
    SWAP y[(rank - s) % p] -> (rank + 1) % p; y[(rank - s - 1) % p] <- (rank - 1) % p
""",
    "all_gather ring, one tensor": """
x = x[:n].clone()
y = torch.<<zeros(p * n, dtype=x.dtype) | zeros(p, n, dtype=x.dtype)>>
c = y.view(p, n)
COPY c[rank], x
for s in range(p - 1):
    SWAP c[(rank - s) % p] -> (rank + 1) % p; c[(rank - s - 1) % p] <- (rank - 1) % p
""",
    "all_gather ring, passing on": """
x = x[:n].clone()
y = [torch.zeros_like(x) for _ in range(p)]
<<y[rank] = x | COPY y[rank], x>>
passing = x
for s in range(p - 1):
    got = torch.empty_like(x)
    SWAP passing -> (rank + 1) % p; got <- (rank - 1) % p
    <<y[(rank - s - 1) % p] = got | COPY y[(rank - s - 1) % p], got>>
    passing = got
""",
    "all_gather recursive_doubling, 2 4": """
x = x[:n].clone()
y = torch.zeros(p * n, dtype=x.dtype)
COPY y[rank * n:(rank + 1) * n], x
for k in (1, 2, 4)[:p // 2]:
    mate, a = rank ^ k, rank // k * k
    b = mate // k * k
    SWAP y[a * n:(a + k) * n] -> mate; y[b * n:(b + k) * n] <- mate
""",
    "reduce_scatter pairwise": """
y = x[rank * n:(rank + 1) * n].clone()
b = torch.empty_like(y)
for s in range(1, p):
    to, source = (rank + s) % p, (rank - s) % p
    SWAP x[to * n:(to + 1) * n] -> to; b <- source
    SUM y, b
""",
    "reduce_scatter, parts, sum only": """
parts = [torch.zeros(n, dtype=x.dtype) for _ in range(p)]
works = [dist.isend(x[r * n:(r + 1) * n], r) for r in others] + [dist.irecv(parts[r], r) for r in others]
for w in works: w.wait()
<<parts[rank] = x[rank * n:(rank + 1) * n] | COPY parts[rank], x[rank * n:(rank + 1) * n]>>
y = <<sum(parts) | torch.stack(parts).sum(0) | torch.stack(parts).sum(dim=0)>>
""",
    "reduce_scatter ring": """
w = x.clone()
c = <<list(w.chunk(p)) | w.view(p, n)>>
b = torch.empty_like(c[0])
for s in range(p - 1):
    SWAP c[(rank - 1 - s) % p] -> (rank + 1) % p; b <- (rank - 1) % p
    ADD c[(rank - 2 - s) % p], b
y = c[rank]<< | .clone()>>
""",
    "all_reduce naive": """
y = <<x.clone() | x>>
if rank == 0:
    b = torch.empty_like(x)
    for r in range(1, p):
        dist.recv(b, r)
        SUM y, b
    for r in range(1, p):
        dist.send(y, r)
else:
    dist.send(y, 0)
    dist.recv(y, 0)
""",
    "all_reduce naive, new tensors": """
if rank == 0:
    y = x.clone()
    for r in range(1, p):
        b = torch.empty_like(x)
        dist.recv(b, r)
        SUM y, b
    for r in range(1, p):
        dist.send(y, r)
else:
    dist.send(x, 0)
    y = torch.empty_like(x)
    dist.recv(y, 0)
""",
    "all_reduce exchange": """
bufs = [torch.empty_like(x) for _ in others]
works = [dist.irecv(b, r) for b, r in zip(bufs, others)] + [dist.isend(x, r) for r in others]
for w in works: w.wait()
y = x.clone()
for b in bufs:
    SUM y, b
""",
    "all_reduce exchange, at once, sum only": """
bufs = [torch.empty_like(x) for _ in others]
works = [dist.irecv(b, r) for b, r in zip(bufs, others)] + [dist.isend(x, r) for r in others]
for w in works: w.wait()
y = <<x + sum(bufs) | sum(bufs, x) | x + torch.stack(bufs).sum(0) | torch.stack([x] + bufs).sum(0)>>
""",
    "all_reduce whole_ring": """
y, passing = x.clone(), <<x.clone() | x>>
for s in range(p - 1):
    got = torch.empty_like(x)
    SWAP passing -> (rank + 1) % p; got <- (rank - 1) % p
    SUM y, got
    passing = got
""",
    "all_reduce ring, views": """
y = x.clone()
c = <<list(y.chunk(p)) | y.view(p, -1) | list(y.tensor_split(p))>>
b = torch.empty_like(c[0])
for s in range(p - 1):
    SWAP c[(rank - s) % p] -> (rank + 1) % p; b <- (rank - 1) % p
    ADD c[(rank - s - 1) % p], b
for s in range(p - 1):
    SWAP c[(rank + 1 - s) % p] -> (rank + 1) % p; c[(rank - s) % p] <- (rank - 1) % p
""",
    "all_reduce ring, slices": """
y = x.clone()
for s in range(p - 1):
    k, j = (rank - s) % p, (rank - s - 1) % p
    b = torch.<<zeros | empty>>(n, dtype=x.dtype)
    SWAP y[k * n:(k + 1) * n] -> (rank + 1) % p; b <- (rank - 1) % p
    ADD y[j * n:(j + 1) * n], b
for s in range(p - 1):
    k, j = (rank + 1 - s) % p, (rank - s) % p
    b = torch.zeros(n, dtype=x.dtype)
    SWAP y[k * n:(k + 1) * n]<< | .clone()>> -> (rank + 1) % p; b <- (rank - 1) % p
    COPY y[j * n:(j + 1) * n], b
""",
    "all_reduce ring, list of parts": """
c = [part.clone() for part in x.chunk(p)]
for s in range(p - 1):
    got = torch.empty_like(c[0])
    SWAP c[(rank - s) % p] -> (rank + 1) % p; got <- (rank - 1) % p
    SUM c[(rank - s - 1) % p], got
for s in range(p - 1):
    got = torch.empty_like(c[0])
    SWAP c[(rank + 1 - s) % p] -> (rank + 1) % p; got <- (rank - 1) % p
    <<c[(rank - s) % p] = got | COPY c[(rank - s) % p], got>>
y = torch.cat(c)
""",
    "all_reduce recursive_doubling, 2 4": """
y, b = x.clone(), torch.empty_like(x)
for k in (1, 2, 4)[:p // 2]:
    SWAP y -> rank ^ k; b <- rank ^ k
    SUM y, b
""",
    "all_to_all linear, list": """
c = <<list(x.chunk(p)) | [part.clone() for part in x.chunk(p)]>>
y = [torch.empty_like(c[0]) for _ in range(p)]
<<y[rank] = c[rank] | COPY y[rank], c[rank]>>
works = [dist.isend(c[r], r) for r in others] + [dist.irecv(y[r], r) for r in others]
for w in works: w.wait()
<< | y = torch.cat(y)>>
""",
    "all_to_all linear, one tensor": """
y = torch.<<zeros_like | empty_like>>(x)
COPY y[rank * n:(rank + 1) * n], x[rank * n:(rank + 1) * n]
works = [dist.isend(x[r * n:(r + 1) * n], r) for r in others]
works += [dist.irecv(y[r * n:(r + 1) * n], r) for r in others]
for w in works: w.wait()
""",
    "all_to_all pairwise": """
c = x.view(p, n)
y = torch.zeros_like(c)
COPY y[rank], c[rank]
for s in range(1, p):
    to, source = (rank + s) % p, (rank - s) % p
    SWAP c[to] -> to; y[source] <- source
""",
}

PLACE = re.compile(r"<<(.*?)>>", re.S)
MACRO = re.compile(r"^( *)(?:(SWAP) (.*) -> (.*); (.*) <- (.*)|(ADD|SUM|COPY) (.*), ([^,\n]*))$", re.M)
SWAPS = [
    "a, w = dist.isend({0}, {1}), dist.irecv({2}, {3})\na.wait(); w.wait()",
    "w = dist.irecv({2}, {3})\na = dist.isend({0}, {1})\nw.wait(); a.wait()",
    "a = dist.isend({0}, {1})\ndist.recv({2}, {3})\na.wait()",
    "for w in [dist.isend({0}, {1}), dist.irecv({2}, {3})]: w.wait()",
    "ops = [dist.P2POp(dist.isend, {0}, {1}), dist.P2POp(dist.irecv, {2}, {3})]\n"
    "for w in dist.batch_isend_irecv(ops): w.wait()",
    "if rank % 2 == 0:\n    dist.send({0}, {1})\n    dist.recv({2}, {3})\n"
    "else:\n    dist.recv({2}, {3})\n    dist.send({0}, {1})",
]
INPLACE = {
    "sum": ["{0} += {1}", "{0} += {1}", "{0}.add_({1})", "torch.add({0}, {1}, out={0})", "{0}[:] = {0} + {1}"],
    "max": ["torch.maximum({0}, {1}, out={0})", "{0}[:] = torch.maximum({0}, {1})"],
    "min": ["{0}.copy_(torch.minimum({0}, {1}))"],
    "product": ["{0} *= {1}", "{0}.mul_({1})"],
}
ANEW = {
    "sum": ["{0} = {0} + {1}", "{0} = torch.add({0}, {1})", "{0} = {1} + {0}"],
    "max": ["{0} = torch.maximum({0}, {1})"],
    "min": ["{0} = torch.minimum({0}, {1})"],
    "product": ["{0} = {0} * {1}"],
}
COPIES = ["{0}.copy_({1})", "{0}[:] = {1}", "{0}[...] = {1}"]


class Program(NamedTuple):
    name: str
    collective: str
    root: int | None
    op: str  # how it reduces, if it does
    ranks: int
    n: int  # numbers of one block
    body: str  # from `x` to `y`
    seed: int

    def head(self, n: int | None = None) -> str:
        return HEAD.format(p=self.ranks, n=n or self.n, root=self.root or 0)

    def on(self, data: str) -> str:
        """The whole program, with that kind of data."""
        return f"{self.head()}{DATA[data].format(seed=self.seed)}\n{self.body}"


def written(rng, p: int, name: str) -> Program | None:
    """One of the right ways to write that program; None if it is not for so many ranks."""
    collective = re.match(r"\w+", name)[0]
    if " 2 4" in name and p not in (2, 4, 8):
        return None
    rooted = collective in ("broadcast", "scatter", "gather", "reduce")
    n, root = rng.choice((1, 2, 3)), rng.randrange(p) if rooted and " 2 4" not in name else 0
    op = "sum" if "sum only" in name else rng.choices([*INPLACE], [12, 2, 1, 1])[0]
    swap = rng.choice(SWAPS)
    choices = [rng.choice(place.split("|")).strip() for place in PLACE.findall(PROGRAMS[name])]
    text = PLACE.sub(lambda _: choices.pop(0), PROGRAMS[name])

    def line(match):
        indent, is_swap, *sides, macro, a, b = match.groups()
        if is_swap:
            made = swap.format(*sides)
        elif macro == "COPY":
            made = rng.choice(COPIES).format(a, b)
        else:
            made = rng.choice(INPLACE[op] + (ANEW[op] if macro == "SUM" else [])).format(a, b)
        return indent + made.replace("\n", "\n" + indent)

    body = MACRO.sub(line, text).strip("\n") + "\n"
    if rng.random() < 0.25:
        inner = "".join(f"    {line}\n" for line in body.splitlines())
        body = f"def f(x):\n    y = None\n{inner}    return y\ny = f(x)\n"
    return Program(name, collective, root if rooted else None, op, p, n, body, rng.randrange(10**6))


TENSORS = ["x", "y", "y", "y", "b", "got", "passing", "w", "y[0]", "y[-1]", "y[rank]", "c[0]", "c[rank]", "parts[0]"]
AFTER = """
{v} -= {u}
{v} += {u}
{v} = {u}
{v} = {u}.clone()
{v}.copy_({u})
{v} *= 2
{v} = {v} * 2
{v} = {v} + 1
{v}.zero_()
{v}[0] = 0
{v}[-1] += 1
{v}[:1] = {u}[-1:]
{v} = {v}.flip(0)
{v} = {v}.roll(1, 0)
{v} = torch.zeros_like({v})
{v} = torch.ones_like({v})
{v}.numpy()[0] = 12345
{v}.numpy()[:] = 12345
{v}.neg_()
torch.add({v}, {u}, out={v})
{v} = torch.maximum({v}, {u})
{v} = torch.where({v} > 3, {v}, {u})
{v} = torch.nan_to_num({v} - {u})
""".strip().splitlines()


class _Mutation:
    """One change of a program's tree. Each method makes one kind of change, or returns None if there is no place."""

    def __init__(self, rng, body: str):
        self.rng, self.tree = rng, ast.parse(body)
        self.blocks = []  # (list of statements, the loop's variable if it is in a loop)
        self._collect(self.tree, None)
        self.names = [v for v in TENSORS if re.search(rf"\b{re.escape(v.split('[')[0])}\b", body)]
        self.nodes = [*ast.walk(self.tree)]

    def _collect(self, node, loop):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            loop = node.target.id
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                self.blocks.append((block, loop))
                for inner in block:
                    self._collect(inner, loop)

    def text(self) -> str:
        return ast.unparse(ast.fix_missing_locations(self.tree)) + "\n"

    def _where(self, loop, negated=False) -> str | None:
        """A condition that holds on one rank, in one round, or None for everywhere."""
        equal = "!=" if negated else "=="
        some = [f"rank {equal} {self.rng.choice(['0', '1', 'p - 1', 'root'])}"]
        if loop is not None:
            some += [f"{loop} {equal} {self.rng.choice(['0', '1', 'p - 1', 'p - 2'])}"]
        return self.rng.choice([None, None, *some])

    def _two(self) -> tuple[str, str]:
        v = self.rng.choice(self.names)
        return v, self.rng.choice([u for u in self.names if u.split("[")[0] != v.split("[")[0]])

    def _quiet(self):
        """(block, index, loop) of the simple statements that neither send, receive nor wait."""
        return [
            (block, i, loop)
            for block, loop in self.blocks
            for i, node in enumerate(block)
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) and not _talks(node)
        ]

    def _guarded(self, condition, then: list, otherwise: list) -> list:
        if condition is None:
            return then
        return [ast.If(ast.parse(condition, mode="eval").body, then or [ast.Pass()], otherwise)]

    def drop(self):
        block, i, loop = self.rng.choice(self._quiet())
        block[i : i + 1] = self._guarded(self._where(loop), [], [block[i]]) or [ast.Pass()]

    def twice(self):
        block, i, loop = self.rng.choice(self._quiet())
        block[i + 1 : i + 1] = self._guarded(self._where(loop), [block[i]], [])

    def after(self, texts=AFTER):
        ends = [(block, loop) for block, loop in self.blocks]
        block, loop = self.rng.choice(ends[:1] * 4 + ends)
        at = len(block) - isinstance(block[-1], ast.Return)
        v, u = self._two()
        line = ast.parse(self.rng.choice(texts).format(v=v, u=u)).body
        block[at:at] = self._guarded(self._where(loop), line, [])

    def anywhere(self):
        block, loop = self.rng.choice(self.blocks)
        at = self.rng.randrange(len(block))
        v, u = self._two()
        line = ast.parse(self.rng.choice(AFTER).format(v=v, u=u)).body
        block[at:at] = self._guarded(self._where(loop), line, [])

    def swap(self):
        block, _ = self.rng.choice([entry for entry in self.blocks if len(entry[0]) > 1])
        i = self.rng.randrange(len(block) - 1)
        block[i], block[i + 1] = block[i + 1], block[i]

    def index(self):
        places = [node for node in self.nodes if isinstance(node, (ast.Subscript, ast.BinOp))]
        places = [n for n in places if not isinstance(n, ast.BinOp) or isinstance(n.op, ast.Mod)]
        node, by = self.rng.choice(places), self.rng.choice(["1", "-1", "(rank == 0)"])
        if isinstance(node, ast.BinOp):
            node.left = _plus(node.left, by)
        elif not isinstance(node.slice, ast.Slice):
            node.slice = _plus(node.slice, by)
        else:
            by = self.rng.choice([by, f"{by} * n"])
            node.slice.lower = node.slice.lower and _plus(node.slice.lower, by)
            node.slice.upper = node.slice.upper and _plus(node.slice.upper, by)

    def arithmetic(self):
        """`+=` becomes `=`, a copy becomes an addition, an addition a subtraction."""
        found = []
        for block, i, loop in self._quiet():
            line = ast.unparse(block[i])
            for pattern, new in (
                (r"^(.*) \+= (.*)$", [r"\1 = \2.clone()", r"\1 -= \2", r"\1 += \2 + \2", r"\1 *= \2", r"\1[:] = \2"]),
                (r"^(.*) = .* \+ (.*)$", [r"\1 = \2", r"\1 = \1 - \2", r"\1 = \1", r"\1 = \1 + \2 + \2"]),
                (r"^(.*)\.copy_\((.*)\)$", [r"\1.add_(\2)", r"\1.copy_(2 * \2)", r"\1.copy_(\2.flip(0))"]),
                (r"^(.*)\.add_\((.*)\)$", [r"\1.copy_(\2)", r"\1.sub_(\2)", r"\1.add_(\2, alpha=2)", r"\1.add_(\1)"]),
                (
                    r"^(.*)\[:\] = (.*)$",
                    [r"\1[:] += \2", r"\1[:] = 2 * \2", r"\1[:1] = (\2)[:1]", r"\1[:] = \2.flip(0)"],
                ),
                (r"torch\.add\(", ["torch.sub(", "torch.maximum("]),
                (r"maximum", ["minimum", "add"]),
                (r"\bsum\((\w+)\)", [r"sum(\1[1:])", r"sum(\1[:-1])", r"sum(\1 + \1[:1])"]),
                (r"torch\.(stack|cat)\((\w+)\)", [r"torch.\1(\2[::-1])", r"torch.\1(\2[1:] + \2[:1])"]),
                (r"\.sum\((dim=)?0\)", [".mean(0)", ".amax(0)", ".prod(0)", ".sum(0) * 2"]),
            ):
                if re.search(pattern, line):
                    found.append((block, i, loop, re.sub(pattern, self.rng.choice(new), line)))
        block, i, loop, line = self.rng.choice(found)
        block[i : i + 1] = self._guarded(self._where(loop), ast.parse(line).body, [block[i]])

    def message(self):
        """What is sent is not what should be, or what arrives is put elsewhere."""
        sends = [node for node in self.nodes if _called(node) in ("send", "isend", "recv", "irecv")]
        node = self.rng.choice(sends)
        old, place = ast.unparse(node.args[0]), _called(node)
        if "send" in place:
            new = ["{e}.roll(1, 0)", "{e}.flip(0)", "({e} + 1)", "({e} * 2)", "torch.zeros_like({e})", "x[:len({e})]"]
            new += ["{e}.clone()"]
        else:
            new = ["{e}.clone()", "torch.empty_like({e})"]
        new = self.rng.choice(new).format(e=old)
        if where := self._where(None):
            new = f"({new} if {where} else {old})"
        node.args[0] = ast.parse(new, mode="eval").body

    def beginning(self):
        """What a tensor starts with is something else."""
        calls = [
            node for node in self.nodes if _called(node) in ("clone", "zeros_like", "zeros", "empty_like", "empty")
        ]
        node, old = self.rng.choice(calls), None
        old = ast.unparse(node)
        if _called(node) == "clone":
            of = ast.unparse(node.func.value)
            new = [of, f"torch.ones_like({of})", f"torch.zeros_like({of})", f"torch.full_like({of}, 7)", f"({of} + 1)"]
        else:
            new = [
                old.replace(_called(node), _called(node).replace(a, b))
                for a in ("zeros", "empty")
                for b in ("ones", "zeros")
            ]
        new = self.rng.choice(new)
        if where := self._where(None):
            new = f"({new} if {where} else {old})"
        made = ast.parse(new, mode="eval").body
        for parent in self.nodes:
            for field, value in ast.iter_fields(parent):
                if value is node:
                    setattr(parent, field, made)
                elif isinstance(value, list) and any(item is node for item in value):
                    value[:] = [made if item is node else item for item in value]

    def rounds(self):
        """A loop runs once too often or too little."""
        loop = self.rng.choice([node for node in self.nodes if isinstance(node, (ast.For, ast.comprehension))])
        old = ast.unparse(loop.iter)
        new = [f"[*{old}][1:]", f"[*{old}][:-1]", f"[*{old}] + [*{old}][:1]", f"[*{old}][::-1]"]
        loop.iter = ast.parse(self.rng.choice(new), mode="eval").body

    def pair(self):
        """Two ranks forget the message between them, or one of its directions, on both sides."""
        a, b = self.rng.choice([("0", "1"), ("1", "p - 1"), ("0", "p - 1"), ("root", "1")])
        both = self.rng.random() < 0.5
        for block, _ in self.blocks:
            for i, node in enumerate(block):
                how = _called(node.value) if isinstance(node, ast.Expr) else None
                if how in ("send", "recv"):
                    block[i] = self._guarded(_forgotten(how, node.value, a, b, both), [], [node])[0]
        for node in self.nodes:
            if isinstance(node, ast.ListComp) and (how := _called(node.elt)) in ("isend", "irecv"):
                gone = ast.parse(f"not ({_forgotten(how, node.elt, a, b, both)})", mode="eval").body
                node.generators[0].ifs.append(gone)


KINDS = {"after": 6, "drop": 5, "arithmetic": 4, "index": 3, "anywhere": 2, "message": 2, "beginning": 2, "rounds": 2}
KINDS |= {"twice": 1, "swap": 1, "pair": 1}


def wrong(rng, body: str) -> str | None:
    """The program with one line changed, now and then two; None if there was no place for the change."""
    for _ in range(rng.choice((1, 1, 1, 1, 2))):
        try:
            mutation = _Mutation(rng, body)
            getattr(mutation, rng.choices([*KINDS], [*KINDS.values()])[0])()
            body = mutation.text()
        except (IndexError, SyntaxError):
            return None
    return body


def _called(node) -> str | None:
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def _talks(node) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("wait", "P2POp", "send", "recv", "isend", "irecv")
        for part in ast.walk(node)
    )


def _plus(node, by: str):
    return ast.BinOp(node, ast.Add(), ast.parse(by, mode="eval").body)


def _forgotten(how: str, call, a: str, b: str, both: bool) -> str:
    peer = ast.unparse(call.args[1])
    if both:
        return f"{{rank, {peer}}} == {{{a}, {b}}}"
    sender, receiver = ("rank", peer) if "send" in how else (peer, "rank")
    return f"({sender}, {receiver}) == ({a}, {b})"
