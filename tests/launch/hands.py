"""Small programs of hand-written collectives, right and subtly wrong, for the test of the names that runs get.

`<<right | right
    || wrong | wrong>>` is a place where a program is written in one of several ways. Each begins with its
data `x` (p blocks of n numbers), `root`, and `others` (all ranks but this one); some work on a block only.
"""

import re

PLACE = re.compile(r"<<(.*?)>>", re.S)

DATA = {
    "random": "torch.manual_seed({seed} + rank); x = torch.randint(1, 10**6, (p * n,))",
    "origin": "x = torch.arange(p * n) + 100 * rank",
    "ones": "x = torch.ones(p * n)",
    "rank": "x = torch.ones(p * n) * rank",
    "zeros": "x = torch.zeros(p * n)",
}

PROGRAMS = {
    "reduce, parts": (
        "reduce",
        """
parts = [torch.empty_like(x) for _ in range(p)]
if rank == root:
    for r in others:
        dist.recv(parts[r], r)
    y = <<x.clone() || torch.zeros_like(x) || torch.ones_like(x) || parts[others[0]].clone() >>
    for r in <<others || others[1:] || others[:-1] || others + others[:1] >>:
        <<y += parts[r] | y = y + parts[r] || y = parts[r].clone() || y += x>>
else:
    dist.send(<<x | x.clone() || x + 1>>, root)
""",
    ),
    "reduce, zeros then all": (
        "reduce",
        """
if rank == root:
    parts = [torch.empty_like(x) for _ in range(p)]
    works = [dist.irecv(parts[r], r) for r in others]
    for w in works: w.wait()
    y = torch.zeros_like(x)
    <<y += x || pass || y += 2 * x>>
    for r in <<others || others[1:] || others + others[:1] >>:
        y += parts[r]
else:
    dist.isend(x, root).wait()
""",
    ),
    "reduce, sum()": (
        "reduce",
        """
if rank == root:
    parts = [torch.zeros_like(x) for _ in range(p)]
    for r in others:
        dist.recv(parts[r], r)
    <<parts[root] = x | parts[root].copy_(x) || pass || parts[root] = parts[others[0]] >>
    y = <<sum(parts) | torch.stack(parts).sum(0) || sum(parts[1:]) || sum(parts[:-1])>>
else:
    dist.send(x, root)
""",
    ),
    "reduce, one buffer": (
        "reduce",
        """
if rank == root:
    <<y = x.clone() | y = x || y = torch.zeros_like(x)>>
    buf = torch.empty_like(x)
    for r in others:
        dist.recv(buf, r)
        <<y += buf | y = y + buf || y = buf.clone() || y += x || y += buf + buf >>
else:
    dist.send(x, root)
""",
    ),
    "broadcast, flat": (
        "broadcast",
        """
y = <<x.clone() | x || torch.zeros_like(x)>>
if rank == root:
    for r in <<others>>:
        dist.send(<<y || y if r != others[-1] else y + 1 || y.roll(1) >>, r)
else:
    <<dist.recv(y, root)
    || b = torch.empty_like(y); dist.recv(b, root); y += b
    || b = torch.empty_like(y); dist.recv(b, root)>>
""",
    ),
    "broadcast, scratch": (
        "broadcast",
        """
if rank == root:
    y = x.clone()
    for r in others:
        dist.send(x, r)
else:
    got = torch.empty_like(x)
    dist.recv(got, root)
    <<y = got | y = got.clone() || y = x.clone() || y = x + got>>
""",
    ),
    "scatter": (
        "scatter",
        """
y = <<torch.empty(n, dtype=x.dtype) | torch.zeros(n, dtype=x.dtype)>>
if rank == root:
    for r in others:
        dist.send(x[<<r * n:(r + 1) * n || :n || (r + 1) % p * n:((r + 1) % p + 1) * n || (p - 1) * n:>>], r)
    <<y[:] = x[rank * n:(rank + 1) * n] | y = x[rank * n:(rank + 1) * n].clone() | y.copy_(x[rank * n:(rank + 1) * n])
    || pass
    || y[:] = x[:n]
    || y[:] = x[-n:]>>
else:
    dist.recv(y, root)
""",
    ),
    "gather, list": (
        "gather",
        """
x = x[:n].clone()
if rank == root:
    y = [torch.empty_like(x) for _ in range(p)]
    <<y[root] = x | y[root].copy_(x) | y[root][:] = x | y[root] = x.clone() || pass || y[root - 1] = x >>
    for r in others:
        dist.recv(y[ <<r || others[-1 - others.index(r)] || others[0] >> ], r)
    <<pass || y[others[0]] = y[others[-1]] || y[root] = y[others[0]] >>
else:
    dist.send(x, root)
""",
    ),
    "gather, list, own put last": (
        "gather",
        """
x = x[:n].clone()
if rank == root:
    y = [torch.empty_like(x) for _ in range(p)]
    works = [dist.irecv(y[r], r) for r in others]
    for w in works: w.wait()
    <<y[root] = x | y[root].copy_(x) | y[root][:] = x | y[root] = x.clone()
    || pass
    || y[root] = y[others[0]]
    || y[root].copy_(y[others[0]]) >>
else:
    dist.send(x, root)
""",
    ),
    "gather, one tensor": (
        "gather",
        """
x = x[:n].clone()
if rank == root:
    y = torch.zeros(p * n, dtype=x.dtype)
    <<y[rank * n:(rank + 1) * n] = x || pass || y[:n] = x || y[-n:] = x >>
    for r in others:
        dist.recv(y[<<r * n:(r + 1) * n || (p - 1 - r) * n:(p - r) * n>>], r)
else:
    dist.send(x, root)
""",
    ),
    "gather, cat": (
        "gather",
        """
x = x[:n].clone()
if rank == root:
    parts = [torch.zeros_like(x) for _ in range(p)]
    parts[rank] = <<x || torch.zeros_like(x)>>
    for r in others:
        dist.recv(parts[r], r)
    y = <<torch.cat(parts) || torch.cat(parts[::-1]) || torch.cat(parts[1:] + parts[:1])>>
else:
    dist.send(x, root)
""",
    ),
    "all_gather, list, flat": (
        "all_gather",
        """
x = x[:n].clone()
y = [torch.<<empty_like|zeros_like>>(x) for _ in range(p)]
<<y[rank] = x | y[rank].copy_(x) | y[rank][:] = x | y[rank] = x.clone()
    || pass
    || y[rank - 1] = x
    || y[0] = x>>
works = [dist.isend(x, r) for r in others]
works += [dist.irecv(y[ <<r || p - 1 - r || others[-1 - others.index(r)] >> ], r) for r in others]
for w in works: w.wait()
""",
    ),
    "all_gather, list, ring": (
        "all_gather",
        """
x = x[:n].clone()
y = [torch.empty_like(x) for _ in range(p)]
<<y[rank] = x | y[rank].copy_(x) | y[rank] = x.clone() >>
for s in range(p - 1):
    k, j = (rank - s) % p, (rank - s - 1) % p
    a, b = dist.isend(y[ <<k || rank >> ], (rank + 1) % p), dist.irecv(y[j], (rank - 1) % p)
    a.wait(); b.wait()
""",
    ),
    "all_gather, list, ring passing": (
        "all_gather",
        """
x = x[:n].clone()
y = [torch.zeros_like(x) for _ in range(p)]
<<y[rank] = x | y[rank].copy_(x) || pass || y[0] = x >>
out = x
for s in range(p - 1):
    got = torch.empty_like(x)
    a, b = dist.isend(<<out || x>>, (rank + 1) % p), dist.irecv(got, (rank - 1) % p)
    a.wait(); b.wait()
    y[ <<(rank - s - 1) % p || (rank + s + 1) % p || s >> ] = got
    out = got
""",
    ),
    "all_gather, one tensor, flat": (
        "all_gather",
        """
x = x[:n].clone()
y = torch.<<empty|zeros>>(p * n, dtype=x.dtype)
<<y[rank * n:(rank + 1) * n] = x || pass || y[:n] = x || y[rank * n:(rank + 1) * n] = x + 1>>
works = [dist.isend(x, r) for r in others]
works += [dist.irecv(y[<<r * n:(r + 1) * n || (p - 1 - r) * n:(p - r) * n>>], r) for r in others]
for w in works: w.wait()
<<pass>>
""",
    ),
    "all_gather, one tensor, own put last": (
        "all_gather",
        """
x = x[:n].clone()
y = torch.zeros(p * n, dtype=x.dtype)
works = [dist.isend(x, r) for r in others]
works += [dist.irecv(y[r * n:(r + 1) * n], r) for r in others]
for w in works: w.wait()
<<y[rank * n:(rank + 1) * n] = x | y[rank * n:(rank + 1) * n].copy_(x)
    || pass
    || y[rank * n:(rank + 1) * n] = y[others[0] * n:(others[0] + 1) * n]
    || y[rank * n:(rank + 1) * n] = x + y[others[0] * n:(others[0] + 1) * n]>>
""",
    ),
    "all_gather, one tensor, ring": (
        "all_gather",
        """
x = x[:n].clone()
y = torch.zeros(p * n, dtype=x.dtype)
<<y[rank * n:(rank + 1) * n] = x || pass || y[:n] = x >>
for s in range(p - 1):
    k, j = (rank - s) % p, (rank - s - 1) % p
    a, b = dist.isend(y[k * n:(k + 1) * n], (rank + 1) % p), dist.irecv(y[j * n:(j + 1) * n], (rank - 1) % p)
    a.wait(); b.wait()
""",
    ),
    "all_gather, in a function": (
        "all_gather",
        """
x = x[:n].clone()
def f(t):
    parts = [torch.empty_like(t) for _ in range(p)]
    <<parts[rank] = t | parts[rank].copy_(t) || parts[0] = t || parts[0].copy_(t)>>
    for s in range(p - 1):
        a, b = dist.isend(parts[(rank - s) % p], (rank + 1) % p), dist.irecv(parts[(rank - s - 1) % p], (rank - 1) % p)
        a.wait(); b.wait()
    return <<parts | torch.cat(parts) | torch.stack(parts)>>
y = f(x)
""",
    ),
    "all_reduce, exchange": (
        "all_reduce",
        """
bufs = [torch.empty_like(x) for _ in others]
works = [dist.irecv(b, r) for b, r in zip(bufs, others)] + [dist.isend(x, r) for r in others]
for w in works: w.wait()
y = <<x.clone() || torch.zeros_like(x) || bufs[0].clone() >>
for b in <<bufs || bufs[1:] || bufs + bufs[:1] || bufs[:1] * len(bufs) >>:
    <<y += b | y = y + b>>
""",
    ),
    "all_reduce, naive": (
        "all_reduce",
        """
y = <<x.clone() | x || torch.zeros_like(x)>>
if rank == 0:
    buf = torch.empty_like(x)
    for src in range(1, p):
        dist.recv(buf, src)
        <<y += buf | y = y + buf || y = buf.clone() || y += y || y += x>>
    for dst in range(1, p):
        dist.send(<<y || x || buf>>, dst)
else:
    dist.send(<<y>>, 0)
    <<dist.recv(y, 0) || buf = torch.empty_like(y); dist.recv(buf, 0); y += buf>>
""",
    ),
    "all_reduce, naive in a function": (
        "all_reduce",
        """
def f(x):
    if rank == 0:
        total = <<x.clone() || torch.zeros_like(x)>>
        for src in <<range(1, p) >>:
            incoming = torch.empty_like(x)
            dist.recv(incoming, src)
            <<total += incoming || total += x || total = incoming || total = total + incoming + incoming>>
        for dst in range(1, p):
            dist.send(<<total || x>>, dst)
        return total
    dist.send(x, 0)
    result = torch.empty_like(x)
    dist.recv(result, 0)
    return <<result | result.clone() || x + result>>
y = f(x)
""",
    ),
    "all_reduce, whole ring": (
        "all_reduce",
        """
y, passing = <<x.clone() || torch.zeros_like(x)>>, x.clone()
for s in range(<<p - 1 || p - 2 if p > 2 else 1>>):
    came = torch.empty_like(x)
    req = dist.isend(<<passing || x || y>>, (rank + 1) % p)
    dist.recv(came, (rank - 1) % p)
    req.wait()
    <<y += came | y = y + came || y += passing || y += x>>
    passing = came
""",
    ),
    "all_reduce, ring": (
        "all_reduce",
        """
y = x.clone()
c = list(y.chunk(p))
buf = torch.empty_like(c[0])
for s in range(p - 1):
    a = dist.isend(c[ <<(rank - s) % p || (rank - 2 * s) % p >> ], (rank + 1) % p)
    b = dist.irecv(buf, (rank - 1) % p)
    a.wait(); b.wait()
    <<c[(rank - s - 1) % p] += buf
    || c[(rank - s) % p] += buf
    || c[(rank - s - 1) % p] += c[(rank - s - 1) % p]
    || c[(rank - s - 1) % p].copy_(buf)
    || c[(rank - s - 1) % p] += 2 * buf >>
for s in range(<<p - 1 || p - 2>>):
    a = dist.isend(c[ <<(rank + 1 - s) % p || (rank - s) % p >> ], (rank + 1) % p)
    b = dist.irecv(<<c[(rank - s) % p] || buf>>, (rank - 1) % p)
    a.wait(); b.wait()
    <<pass || c[(rank - s) % p] += buf>>
""",
    ),
    "all_reduce, ring of a list": (
        "all_reduce",
        """
c = <<[part.clone() for part in x.chunk(p)]
    || [torch.zeros_like(part) for part in x.chunk(p)]
    || [x[:n].clone() for _ in range(p)]>>
for s in range(p - 1):
    got = torch.empty_like(c[0])
    a = dist.isend(c[(rank - s) % p], (rank + 1) % p)
    b = dist.irecv(got, (rank - 1) % p)
    b.wait(); a.wait()
    c[(rank - s - 1) % p] = <<c[(rank - s - 1) % p] + got || got || c[(rank - s) % p] + got || got + got>>
for s in range(p - 1):
    got = torch.empty_like(c[0])
    a = dist.isend(c[(rank + 1 - s) % p], (rank + 1) % p)
    b = dist.irecv(got, (rank - 1) % p)
    b.wait(); a.wait()
    c[(rank - s) % p] = <<got || c[(rank - s) % p]>>
y = <<torch.cat(c) || torch.cat(c[::-1])>>
""",
    ),
    "reduce_scatter, flat": (
        "reduce_scatter",
        """
y = x[<<rank * n:(rank + 1) * n || :n || -n:>>].clone()
<<pass || y.zero_()>>
buf = torch.empty_like(y)
for s in range(1, p):
    to, source = (rank + s) % p, (rank - s) % p
    work = dist.isend(x[<<to * n:(to + 1) * n || :n || source * n:(source + 1) * n>>], to)
    dist.recv(buf, source)
    work.wait()
    <<y += buf || y += x[rank * n:(rank + 1) * n] || y += buf + buf || y = buf.clone() >>
""",
    ),
    "reduce_scatter, ring": (
        "reduce_scatter",
        """
w = x.clone()
c = list(w.chunk(p))
buf = torch.empty_like(c[0])
for s in range(p - 1):
    a = dist.isend(c[(rank - 1 - s) % p], (rank + 1) % p)
    b = dist.irecv(buf, (rank - 1) % p)
    a.wait(); b.wait()
    <<c[(rank - 2 - s) % p] += buf || c[(rank - 1 - s) % p] += buf || c[(rank - 2 - s) % p].copy_(buf)>>
y = <<c[rank] | c[rank].clone() || c[0] || c[rank - 1] >>
""",
    ),
    "reduce_scatter, parts": (
        "reduce_scatter",
        """
parts = [torch.zeros(n, dtype=x.dtype) for _ in range(p)]
works = [dist.isend(x[r * n:(r + 1) * n], r) for r in others] + [dist.irecv(parts[r], r) for r in others]
for w in works: w.wait()
<<parts[rank] = x[rank * n:(rank + 1) * n] || pass || parts[rank] = x[:n] || parts[rank] = parts[rank - 1] >>
y = <<sum(parts) | torch.stack(parts).sum(0) || sum(parts[1:])>>
""",
    ),
    "all_to_all, one tensor": (
        "all_to_all",
        """
y = torch.zeros_like(x)
<<y[rank * n:(rank + 1) * n] = x[rank * n:(rank + 1) * n]
    || pass
    || y[rank * n:(rank + 1) * n] = x[:n]
    || y[:n] = x[:n]>>
works = [dist.isend(x[<<r * n:(r + 1) * n || rank * n:(rank + 1) * n || :n>>], r) for r in others]
works += [dist.irecv(y[<<r * n:(r + 1) * n || (p - 1 - r) * n:(p - r) * n>>], r) for r in others]
for w in works: w.wait()
""",
    ),
    "all_to_all, list": (
        "all_to_all",
        """
c = list(x.chunk(p))
y = [torch.empty_like(c[0]) for _ in range(p)]
<<y[rank] = c[rank] | y[rank].copy_(c[rank]) || pass || y[rank] = c[0] || y[rank].copy_(c[0])>>
for s in range(1, p):
    to, source = (rank + s) % p, (rank - s) % p
    a, b = dist.isend(c[ <<to || source || rank>> ], to), dist.irecv(y[source], source)
    a.wait(); b.wait()
""",
    ),
}


def written(rng, name: str, wrong: bool) -> tuple[str, str, bool]:
    """(collective, source, whether it is right): with `wrong`, one of its places is."""
    collective, text = PROGRAMS[name]
    places = [match.group(1) for match in PLACE.finditer(text)]
    faulty = rng.choice([i for i, place in enumerate(places) if "||" in place]) if wrong else None
    chosen = []
    for i, place in enumerate(places):
        right, *bad = place.split("||")
        chosen.append(rng.choice(bad if i == faulty else right.split("|")).strip())
    return collective, PLACE.sub(lambda _: chosen.pop(0), text), not wrong
