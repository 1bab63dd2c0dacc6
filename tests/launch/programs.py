"""Programs a student might write, for the tests of tap and recording. Each defines `y`, the all_reduce of `x`."""

SETUP = "n = 2\nx = torch.arange(n * world_size, dtype=torch.float32) + 100 * rank\n"

RINGS = {
    "chunk views, one scratch": """
def ring(x):
    p, r = dist.get_world_size(), dist.get_rank()
    acc = x.clone()
    chunks = list(acc.chunk(p))
    buf = torch.empty_like(chunks[0])
    for s in range(p - 1):
        a = dist.isend(chunks[(r - 1 - s) % p], (r + 1) % p)
        b = dist.irecv(buf, (r - 1) % p)
        a.wait(); b.wait()
        chunks[(r - 2 - s) % p] += buf
    for s in range(p - 1):
        a = dist.isend(chunks[(r - s) % p], (r + 1) % p)
        b = dist.irecv(chunks[(r - 1 - s) % p], (r - 1) % p)
        a.wait(); b.wait()
    return acc
y = ring(x)
""",
    "slices, new scratch each step": """
p, n = world_size, len(x) // world_size
y = x.clone()
left, right = (rank - 1) % p, (rank + 1) % p
for s in range(p - 1):
    k, j = (rank - s) % p, (rank - 1 - s) % p
    buf = torch.zeros(n, dtype=x.dtype)
    reqs = [dist.isend(y[k * n:(k + 1) * n], right), dist.irecv(buf, left)]
    for req in reqs:
        req.wait()
    y[j * n:(j + 1) * n] += buf
for s in range(p - 1):
    k, j = (rank + 1 - s) % p, (rank - s) % p
    buf = torch.zeros(n, dtype=x.dtype)
    reqs = [dist.isend(y[k * n:(k + 1) * n], right), dist.irecv(buf, left)]
    for req in reqs:
        req.wait()
    y[j * n:(j + 1) * n] = buf
""",
    "rows of a matrix": """
def all_reduce(t):
    rows = t.view(world_size, -1)
    recv = torch.empty_like(rows[0])
    for s in range(world_size - 1):
        req = dist.isend(rows[(rank - s) % world_size], (rank + 1) % world_size)
        dist.recv(recv, (rank - 1) % world_size)
        req.wait()
        rows[(rank - s - 1) % world_size].add_(recv)
    for s in range(world_size - 1):
        req = dist.isend(rows[(rank - s + 1) % world_size], (rank + 1) % world_size)
        dist.recv(rows[(rank - s) % world_size], (rank - 1) % world_size)
        req.wait()
y = x.clone()
all_reduce(y)
""",
    "list of tensors, sums out of place": """
def ring(x):
    p, r = world_size, rank
    parts = [part.clone() for part in x.chunk(p)]
    for s in range(p - 1):
        got = torch.empty_like(parts[0])
        a = dist.isend(parts[(r - s) % p], (r + 1) % p)
        b = dist.irecv(got, (r - 1) % p)
        b.wait(); a.wait()
        parts[(r - s - 1) % p] = parts[(r - s - 1) % p] + got
    for s in range(p - 1):
        got = torch.empty_like(parts[0])
        a = dist.isend(parts[(r + 1 - s) % p], (r + 1) % p)
        b = dist.irecv(got, (r - 1) % p)
        b.wait(); a.wait()
        parts[(r - s) % p] = got
    return torch.cat(parts)
y = ring(x)
""",
    "batch_isend_irecv": """
p = world_size
y = x.clone()
c = list(torch.chunk(y, p))
tmp = torch.empty_like(c[0])
def swap(out, into):
    ops = [dist.P2POp(dist.isend, out, (rank + 1) % p), dist.P2POp(dist.irecv, into, (rank - 1) % p)]
    for req in dist.batch_isend_irecv(ops):
        req.wait()
for s in range(p - 1):
    swap(c[(rank - 1 - s) % p], tmp)
    c[(rank - 2 - s) % p] += tmp
for s in range(p - 1):
    swap(c[(rank - s) % p], c[(rank - 1 - s) % p])
""",
    "blocking, odd and even": """
def ring(x):
    p, r = world_size, rank
    acc = x.clone()
    ch = acc.chunk(p)
    buf = torch.zeros_like(ch[0])
    def exchange(out, into):
        if r % 2 == 0:
            dist.send(out, (r + 1) % p)
            dist.recv(into, (r - 1) % p)
        else:
            dist.recv(into, (r - 1) % p)
            dist.send(out, (r + 1) % p)
    for s in range(p - 1):
        exchange(ch[(r - s) % p], buf)
        ch[(r - s - 1) % p].add_(buf)
    for s in range(p - 1):
        exchange(ch[(r - s + 1) % p], ch[(r - s) % p])
    return acc
y = ring(x)
""",
    "clones are sent, scratch is copied": """
p = world_size
y = x.clone().reshape(p, -1)
for s in range(2 * (p - 1)):
    k = (rank - s) % p if s < p - 1 else (rank + 1 - (s - p + 1)) % p
    j = (k - 1) % p
    out = y[k].clone()
    into = torch.empty_like(out)
    a, b = dist.isend(out, (rank + 1) % p), dist.irecv(into, (rank - 1) % p)
    a.wait(); b.wait()
    if s < p - 1:
        y[j] = y[j] + into
    else:
        y[j].copy_(into)
y = y.flatten()
""",
}

NAIVE = """
y = x.clone()
if rank == 0:
    buf = torch.empty_like(x)
    for src in range(1, world_size):
        dist.recv(buf, src)
        y += buf
    for dst in range(1, world_size):
        dist.send(y, dst)
else:
    dist.send(y, 0)
    dist.recv(y, 0)
"""

NAIVES = {
    "one buffer": NAIVE,
    "total only on rank 0": NAIVE.replace("y = x.clone()\n", "y = x\n", 1).replace("y += buf", "y = y + buf"),
    "in a function, the sum returned": """
def naive(x):
    if rank == 0:
        total = x.clone()
        for src in range(1, world_size):
            incoming = torch.empty_like(x)
            dist.recv(incoming, src)
            total += incoming
        for dst in range(1, world_size):
            dist.send(total, dst)
        return total
    dist.send(x, 0)
    result = torch.empty_like(x)
    dist.recv(result, 0)
    return result
y = naive(x)
""",
}

WHOLE_RINGS = {
    "the PyTorch tutorial's": """
def allreduce(send, recv):
    rank = dist.get_rank()
    size = dist.get_world_size()
    send_buff = send.clone()
    recv_buff = send.clone()
    accum = send.clone()
    left = ((rank - 1) + size) % size
    right = (rank + 1) % size
    for i in range(size - 1):
        if i % 2 == 0:
            send_req = dist.isend(send_buff, right)
            dist.recv(recv_buff, left)
            accum[:] += recv_buff[:]
        else:
            send_req = dist.isend(recv_buff, right)
            dist.recv(send_buff, left)
            accum[:] += send_buff[:]
        send_req.wait()
    recv[:] = accum[:]
y = torch.zeros_like(x)
allreduce(x, y)
""",
    "passing on what came": """
y, passing = x.clone(), x.clone()
for s in range(world_size - 1):
    came = torch.empty_like(x)
    req = dist.isend(passing, (rank + 1) % world_size)
    dist.recv(came, (rank - 1) % world_size)
    req.wait()
    y += came
    passing = came
""",
}

EXCHANGES = {
    "all at once": """
y = x.clone()
others = [r for r in range(world_size) if r != rank]
bufs = [torch.empty_like(x) for _ in others]
reqs = [dist.irecv(buf, r) for buf, r in zip(bufs, others)] + [dist.isend(x, r) for r in others]
for req in reqs:
    req.wait()
for buf in bufs:
    y += buf
""",
    "sum of a stack": """
others = [r for r in range(world_size) if r != rank]
bufs = [torch.empty_like(x) for _ in others]
reqs = [dist.irecv(buf, r) for buf, r in zip(bufs, others)] + [dist.isend(x, r) for r in others]
for req in reqs:
    req.wait()
y = x + torch.stack(bufs).sum(0)
""",
}
