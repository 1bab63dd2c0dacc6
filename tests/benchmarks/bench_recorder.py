"""What recording costs: the same call with and without, in turn in one run, as the median of many.

Three ways are compared: no tap at all, the tap as it always is (off), and a recording going on (on), which also watches
every op of torch. The calls are held against the goals of the recorder: 1.15 on a small all_reduce of 4 ranks, 1.5 on a
ring of 8 numbers by hand, on a pair of isend and irecv and on a training step of a small model with its gradients
all-reduced, and nothing measurable on ordinary torch ops that are not recorded. Ranks are forked as in the tests of the
tap.

Two more say how much of it is not ours. `nudge`: the same pair, not recorded, with three empty loops of 5 microseconds;
on two cores a rank that is that little late finds its partner and gloo's threads asleep, and waking them costs far
more. `empty`: not recorded, but in a dispatch mode that does nothing: nobody who watches torch's ops in Python can cost
less.
"""

import statistics

from tests.launch.forked import Gang

SETUP = """
import contextlib, statistics, time, torch.utils._python_dispatch
x, y, buf = torch.ones(4), torch.ones(64, 64), torch.empty(4)
large, large_buf = torch.ones(1 << 18), torch.empty(1 << 18)

def collective():
    dist.all_reduce(x)

def pair(x=x, buf=buf, late=lambda: None):
    late()
    sent = dist.isend(x, (rank + 1) % world_size)
    late()
    got = dist.irecv(buf, (rank - 1) % world_size)
    sent.wait()
    got.wait()
    late()

v = torch.arange(8.0)

def ring():
    p, acc = world_size, v.clone()
    chunks = list(acc.chunk(p))
    got = torch.empty_like(chunks[0])
    for s in range(p - 1):
        a, b = dist.isend(chunks[(rank - s) % p], (rank + 1) % p), dist.irecv(got, (rank - 1) % p)
        a.wait(); b.wait()
        chunks[(rank - s - 1) % p] += got
    for s in range(p - 1):
        a = dist.isend(chunks[(rank + 1 - s) % p], (rank + 1) % p)
        b = dist.irecv(chunks[(rank - s) % p], (rank - 1) % p)
        a.wait(); b.wait()

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
batch = torch.randn(64, 64)
large_model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
large_batch = torch.randn(128, 256)

def large_step():
    step(large_model, large_batch)

def step(model=model, batch=batch):
    model.zero_grad()
    model(batch).pow(2).mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad

def pair_of_1_MiB():
    pair(large, large_buf)

def loop():
    until = time.perf_counter() + 5e-6
    while time.perf_counter() < until:
        pass

def ops():
    y.mul_(1.0).add_(0.0)

def timed(call, times):
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times

class Empty(torch.utils._python_dispatch.TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls):
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

def turn(call, times, mode):
    global tap
    if mode == "none":
        tap.remove()
    elif mode == "on":
        tap.start(limit=10 ** 9)
    elif mode == "nudge":
        call = lambda: pair(late=loop)
    with Empty() if mode == "empty" else contextlib.nullcontext():
        dist.barrier()
        timed(call, times // 5)
        dist.barrier()
        taken = timed(call, times)
    if mode == "on":
        tap.stop()
    elif mode == "none":
        tap = type(tap)(slot)
    return taken

seconds = [[turn(CALL, TIMES, mode) for mode in MODES] for _ in range(ROUNDS)]
"""
CASES = (  # call, ranks, calls in a turn, rounds, modes
    ("collective", 4, 100, 41, ("off", "on")),
    ("ring", 4, 30, 41, ("off", "on")),
    ("step", 2, 30, 41, ("off", "on")),
    ("step", 2, 30, 41, ("off", "empty")),
    ("large_step", 2, 10, 41, ("off", "on")),
    ("pair", 2, 100, 41, ("off", "on")),
    ("pair", 2, 100, 41, ("off", "nudge")),
    ("pair_of_1_MiB", 2, 50, 21, ("off", "on")),
    ("ops", 2, 2000, 41, ("none", "off")),
)
GOALS = {"collective": 1.15, "ring": 1.5, "step": 1.5, "large_step": 1.5, "pair": 1.5, "pair_of_1_MiB": 1.5, "ops": 1.0}


def main():
    with Gang() as gang:
        for call, ranks, times, rounds, modes in CASES:
            source = SETUP
            for name, value in (("CALL", call), ("TIMES", times), ("MODES", modes), ("ROUNDS", rounds)):
                source = source.replace(name, str(value))
            answers = gang.run(source, ranks, record=False, keep=["seconds"])
            assert not any(answer["error"] for answer in answers), [answer["error"] for answer in answers]
            seconds = [row for answer in answers for row in answer["keep"]["seconds"]]
            ratio = statistics.median(after / before for before, after in seconds)
            without, with_it = (statistics.median(column) for column in zip(*seconds, strict=True))
            print(f"{call} on {ranks} ranks: {modes[0]} {1e6 * without:.1f} us, {modes[1]} {1e6 * with_it:.1f} us, "
                  f"ratio {ratio:.3f} (goal {GOALS[call]})")  # fmt: skip


if __name__ == "__main__":
    main()
