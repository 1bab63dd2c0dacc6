"""Searches for a program whose recording gets a name that it does not deserve, or a right one that gets none.

    python -m tests.launch.search --wrong 3000 --ranks 2,3,4 --seed 1
    python -m tests.launch.search --styles --wrong 3000 --ranks 2,3,4,5,6,7,8

The oracle knows nothing of recordings, nor of gloo: a program is first run on simulated ranks (`simulated`), twice,
with random numbers that are all different, and it is an all_reduce if some variable then holds, on every rank, what an
all_reduce promises for some variable that all ranks had before they communicated. Programs that hang, leave a message
behind or touch memory that is on its way are left out. The others run on real ranks, recorded, with every kind of data
in `hands.DATA`: whatever the data, the name must be true. Every failure is written to a file with its program.
"""

import argparse
import collections
import itertools
import math
import random
import sys
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from launch.replay.recording import Recording
from tests.launch.forked import Gang
from tests.launch.hands import DATA, PROGRAMS, Program, written, wrong
from tests.launch.styles import STYLES, styled

REDUCTIONS = {"sum": sum, "max": max, "min": min, "product": math.prod}
FILE = "<simulated>"
MANY = """
import linecache, warnings

warnings.simplefilter("ignore")
tapes, errors = [], []
for number, text in enumerate(TEXTS):
    name = f"<cell {number} of many>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space, problem = {"rank": rank, "world_size": world_size, "torch": torch, "dist": dist}, ""
    tap.start()
    try:
        exec(compile(text, name, "exec"), space)
    except Exception as error:
        problem = repr(error)
    tapes.append(tap.stop())
    errors.append(problem)
    dist.barrier()
"""


class Stuck(Exception):
    """The simulated program hangs, or does what gloo would not carry out."""


class _World:
    """Simulated ranks: threads of which one runs at a time, until it has to wait. Messages are matched in order.

    As in gloo, a send is over when its receive was posted.
    """

    def __init__(self, ranks: int):
        self.ranks, self.turn = ranks, threading.Condition()
        self.queues = collections.defaultdict(lambda: ([], []))  # (src, dst) -> sends, receives
        self.stalled, self.done, self.bad = set(), 0, ""
        self.under_way: list[list] = [[] for _ in range(ranks)]  # (tensor, whether it is written)
        self.first: list[dict] = [{} for _ in range(ranks)]  # what a rank sent before it received anything
        self.received: set[int] = set()

    def fail(self, why: str):
        self.bad = self.bad or why
        self.turn.notify_all()
        raise Stuck(self.bad)

    def post(self, rank: int, peer: int, tensor, sends: bool) -> "_Work":
        if not 0 <= peer < self.ranks or peer == rank or not tensor.is_contiguous():
            self.fail("a call that gloo refuses")
        queue = self.queues[(rank, peer) if sends else (peer, rank)]
        item = (tensor, tensor.detach().clone() if sends else None)
        queue[not sends].append(item)
        self.under_way[rank].append((tensor, not sends))
        if sends and rank not in self.received:
            self.first[rank][f"sent {len(self.first[rank])}"] = item[1]
        number = len(queue[not sends]) - 1
        if number < len(queue[sends]):
            a, b = queue[0][number][0], queue[1][number][0]
            if a.numel() != b.numel() or a.dtype != b.dtype:
                self.fail("a message that does not fit")
        self.stalled.clear()
        self.turn.notify_all()
        return _Work(self, rank, queue, number, sends)

    def wait(self, rank: int, ready):
        while not ready():
            self.stalled.add(rank)
            self._look()
            if self.bad:
                raise Stuck(self.bad)
            self.turn.wait()
        if self.bad:
            raise Stuck(self.bad)

    def end(self):
        self.done += 1
        self._look()

    def _look(self):
        if not self.bad and self.stalled and len(self.stalled) + self.done == self.ranks:
            self.bad = "hangs"
        if self.bad:
            self.turn.notify_all()


class _Work:
    def __init__(self, world, rank, queue, number, sends):
        self.world, self.rank, self.queue, self.number, self.sends = world, rank, queue, number, sends
        self.over = False

    def wait(self):
        if self.over:
            self.world.fail("waits twice")  # for ever, with gloo
        self.world.wait(self.rank, lambda: self.number < len(self.queue[self.sends]))
        self.over = True
        tensor = self.queue[not self.sends][self.number][0]
        under_way = self.world.under_way[self.rank]
        del under_way[next(i for i, entry in enumerate(under_way) if entry[0] is tensor)]
        if not self.sends:
            self.world.received.add(self.rank)
            tensor.copy_(self.queue[0][self.number][1].view_as(tensor))


class _Races(TorchDispatchMode):
    """Gives a program up that touches a tensor while it is on its way: what it then holds is anybody's guess."""

    def __init__(self, world, rank):
        super().__init__()
        self.world, self.rank = world, rank

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.world.under_way[self.rank]:
            self._look(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))

    def _look(self, func, args, kwargs):
        schema = func._schema
        view = any(r.alias_info and not r.alias_info.is_write for r in schema.returns)
        if view or "_like" in schema.name or "new_" in schema.name:
            return
        for argument, value in [*zip(schema.arguments, args, strict=False)] + [
            (argument, kwargs[argument.name]) for argument in schema.arguments if argument.name in kwargs
        ]:
            writes = bool(argument.alias_info and argument.alias_info.is_write)
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(tensor, torch.Tensor):
                    for other, is_written in self.world.under_way[self.rank]:
                        if (writes or is_written) and _overlap(tensor, other):
                            self.world.fail("a race")


def _overlap(a, b) -> bool:
    a, b = (range(t.data_ptr(), t.data_ptr() + _extent(t)) for t in (a, b))
    return a.start < b.stop and b.start < a.stop


def _extent(t) -> int:
    return t.element_size() * (1 + sum((size - 1) * step for size, step in zip(t.shape, t.stride(), strict=True)))


class _Dist:
    """What `dist` is on a simulated rank. It also notes what the variables held when it was used first."""

    def __init__(self, world, rank):
        self.world, self.rank, self.before = world, rank, None

    def _note(self):
        if self.before is None:
            frame, frames = sys._getframe(2), []
            while frame is not None:
                if frame.f_code.co_filename == FILE:
                    frames.insert(0, {**(frame.f_globals if frame.f_code.co_name == "<module>" else frame.f_locals)})
                frame = frame.f_back
            found: dict = {}
            for depth, held in enumerate(frames):
                for name, value in held.items():
                    other = found.setdefault(name, value) is not value
                    found |= {f"{name} {depth}": value} if other else {}
            self.before = flat(found)

    def isend(self, tensor, dst):
        self._note()
        return self.world.post(self.rank, dst, tensor, True)

    def irecv(self, tensor, src):
        self._note()
        return self.world.post(self.rank, src, tensor, False)

    def send(self, tensor, dst):
        self.isend(tensor, dst).wait()

    def recv(self, tensor, src):
        self.irecv(tensor, src).wait()

    @staticmethod
    def P2POp(op, tensor, peer):
        return op, tensor, peer

    @staticmethod
    def batch_isend_irecv(ops):
        return [op(tensor, peer) for op, tensor, peer in ops]


class _Torch:
    """torch, whose new memory holds numbers that nothing else holds; if `no_zeros`, what is filled with zeros, too."""

    def __init__(self, numbers, no_zeros=False):
        self._numbers = numbers
        if no_zeros:
            self.zeros, self.zeros_like = self.empty, self.empty_like

    def __getattr__(self, name):
        return getattr(torch, name)

    def _filled(self, tensor):
        return tensor.copy_(torch.tensor([next(self._numbers) for _ in range(tensor.numel())]).view(tensor.shape))

    def empty(self, *size, **how):
        return self._filled(torch.empty(*size, **how))

    def empty_like(self, tensor):
        return self._filled(torch.empty_like(tensor))


def flat(space: dict) -> dict[str, list]:
    """name -> its numbers, of the tensors and the lists of tensors among the variables."""
    held = {}
    for name, value in space.items():
        if isinstance(value, torch.Tensor):
            held[name] = value.flatten().tolist()
        elif isinstance(value, (list, tuple)) and value and all(isinstance(item, torch.Tensor) for item in value):
            held[name] = torch.cat([item.flatten() for item in value]).tolist()
    return held


class Held(NamedTuple):
    """Of one rank, name -> numbers: before it communicated; in the end; and what had died by then as well; and what
    it could call its own data: what it had before, and what it sent before it received."""

    before: dict
    after: dict
    ever: dict
    own: dict


def simulated(source: str, xs: list[torch.Tensor], no_zeros=False) -> list[Held]:
    """What each rank's variables held; Stuck, if the program does not come to its end. See `_Torch`."""
    world = _World(len(xs))
    held: list = [None] * len(xs)
    with warnings.catch_warnings(action="ignore"):
        code = compile(source, FILE, "exec")
    numbers = iter(range(10**6 + 1, 10**9, 7))

    def run(rank):
        with world.turn:
            dist = _Dist(world, rank)
            space = {"rank": rank, "x": xs[rank].clone(), "torch": _Torch(numbers, no_zeros), "dist": dist}
            gone = {}

            def left(frame, event, _):
                if event == "return" and frame.f_code.co_filename == FILE and frame.f_code.co_name != "<module>":
                    gone.update({f"{name} of {frame.f_code.co_name}": v for name, v in frame.f_locals.items()})

            try:
                sys.setprofile(left if "def " in source else None)
                with _Races(world, rank):
                    exec(code, space)
                sys.setprofile(None)
                for (_, dst), (_, receives) in world.queues.items():
                    for tensor, _ in receives if dst == rank else ():
                        gone[f"message {len(gone)}"] = tensor if tensor._base is None else tensor._base
                after = flat(space)
                before = after if dist.before is None else dist.before
                held[rank] = Held(before, after, {**flat(gone), **after}, {**before, **flat(world.first[rank])})
                if world.under_way[rank]:
                    world.fail("not waited for")
            except Stuck:
                pass
            except Exception as error:
                world.bad = world.bad or repr(error)
            world.end()

    threads = [threading.Thread(target=run, args=[rank]) for rank in range(len(xs))]
    with warnings.catch_warnings(action="ignore"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if not world.bad and any(len(sends) != len(receives) for sends, receives in world.queues.values()):
        world.bad = "a message is left behind"
    if world.bad:
        raise Stuck(world.bad)
    return held


class Truth:
    """What a program really does: which names are true of it."""

    def __init__(self, program: Program):
        self.program = program
        # A changed program may have become another reduction, and is that then.
        self.ops = {"sum", "product", program.op} | {op for op in ("max", "min") if op in program.body}
        self.seeds = 8 if self.ops & {"max", "min"} else 2  # a maximum is too often what one rank had
        self.runs = [self._run(0, program.n)]

    def _every(self) -> Iterator[list[Held]]:
        """The runs, each made when it is asked for: the first one tells most wrong programs."""
        for seed in range(self.seeds):
            if seed == len(self.runs):
                self.runs.append(self._run(seed, self.program.n))
            yield self.runs[seed]

    def _run(self, seed: int, n: int, no_zeros=False) -> list[Held]:
        p = self.program.ranks
        numbers = torch.randperm(30_000, generator=torch.Generator().manual_seed(seed + self.program.seed)) - 15_000
        xs = numbers[: p * p * n].to(torch.int64 if seed % 2 else torch.float64).view(p, p * n)
        return simulated(self.program.head(n) + self.program.body, list(xs), no_zeros)

    def holds(self, collective: str, root: int | None, ever=False, mixed=False) -> bool | None:
        """Whether the program is that collective; None: on data that were not all different, so nobody knows.

        `ever`: also if what it made was thrown away. `mixed`: also if the data are in this variable on one rank, in
        that on another, or in a nameless tensor that is sent.
        """
        try:
            told = self._all(self._told(collective, root, run, ever, mixed) for run in self._every())
        except Stuck:  # with some numbers
            return None
        if told is None:  # it can be that collective of zeros: then it is, if it is with other numbers in their place
            try:
                runs = [self._run(seed, self.program.n, True) for seed in range(2)]
            except Stuck:
                return None
            told = self._all([self._told(collective, root, run, ever, mixed) for run in runs]) or None
        return told

    def right(self) -> bool | None:
        """Whether it is what it was written to be; None: only with blocks of this size (of 1, they can be flipped)."""
        name = self.program.collective, self.program.root
        told = self.holds(*name)
        try:
            return told and (self._told(*name, self._run(9, self.program.n + 2), False, False) or None)
        except Stuck:
            return None

    @staticmethod
    def _all(told: Iterable[bool | None]) -> bool | None:
        unknown = False
        for each in told:
            if each is False:
                return False
            unknown |= each is None
        return None if unknown else True

    def _told(self, collective: str, root: int | None, run: list[Held], ever: bool, mixed: bool) -> bool | None:
        befores = [held.own if mixed else held.before for held in run]
        ends = [held.ever if ever else held.after for held in run]
        if collective in ("broadcast", "scatter"):
            befores = [befores[root]] * len(run)  # what the others had does not matter
            mixed = False
        answer = False
        if mixed:
            inputs = itertools.product(*({tuple(value): value for value in b.values()}.values() for b in befores))
        else:
            inputs = ([b[name] for b in befores] for name in set.intersection(*map(set, befores)))
        for xs in inputs:
            if xs[0] and len({len(x) for x in xs}) == 1:
                for matter, wanted in promised(collective, xs, root, self.ops):
                    if matter and all(w is None or _in(w, end) for w, end in zip(wanted, ends, strict=True)):
                        if len(set(matter)) == len(matter):
                            return True
                        answer = None
        return answer


def promised(collective: str, xs: list[list], root: int | None, ops: set[str]):
    """(the numbers that matter, what each rank holds in the end or None for anything), in the ways there are."""
    p, root = len(xs), root or 0
    block = len(xs[0]) // p
    cut = [[x[r * block : (r + 1) * block] for r in range(p)] for x in xs]
    everything = sum(xs, [])
    if collective in ("all_reduce", "reduce", "reduce_scatter"):
        for reduction in map(REDUCTIONS.get, ops):
            total = [_wrapped(reduction(column)) for column in zip(*xs, strict=True)]
            if collective == "reduce_scatter":
                if block:
                    yield everything, [total[r * block : (r + 1) * block] for r in range(p)]
            else:
                yield everything, [total if collective == "all_reduce" or r == root else None for r in range(p)]
    elif collective == "broadcast":
        yield xs[root], [xs[root]] * p
    elif collective in ("all_gather", "gather"):  # a part of its own, or the part where it is to stand
        for whole in (everything, sum((cut[r][r] for r in range(p)), [])):
            yield whole, [whole if collective == "all_gather" or r == root else None for r in range(p)]
    elif collective == "scatter" and block:
        yield xs[root], [cut[root][r] if r != root else None for r in range(p)]
    elif collective == "all_to_all" and block:
        yield everything, [sum((cut[s][r] for s in range(p)), []) for r in range(p)]


def _wrapped(number):
    """What int64 makes of an int."""
    return (number + 2**63) % 2**64 - 2**63 if isinstance(number, int) else number


def _in(wanted: list, after: dict) -> bool:
    """Whether some variable is that, or a part of it."""
    k = len(wanted)
    return any(_same(v[i : i + k], wanted) for v in after.values() for i in range(len(v) - k + 1))


def _same(a: list, b: list) -> bool:
    return a == b or all(math.isclose(x, y, rel_tol=1e-12) for x, y in zip(a, b, strict=True))


class Case(NamedTuple):
    program: Program
    kind: str  # "written", or for a changed one "right" or "wrong"
    truth: Truth


def cases(rng, wanted: int, ranks: int, names=tuple(PROGRAMS)):
    """Programs until `wanted` wrong ones are among them: each as it is written, and some changed ones."""
    seen, bad, good = set(), 0, 0
    while bad < wanted:
        name = rng.choice(names)
        program = written(rng, ranks, name)
        if program is None:
            continue
        for changed in (False, *[True] * 4):
            body = wrong(rng, program.body) if changed else program.body
            if body is None or (program.head(), body) in seen or bad >= wanted:
                continue
            seen.add((program.head(), body))
            made = program._replace(body=body)
            try:
                truth = Truth(made)
            except Stuck:
                continue
            holds = truth.right()
            if changed and holds is None:
                continue
            if not changed and not holds:
                raise AssertionError(f"a program that is not what it says:\n{name}\n{made.head()}{made.body}")
            bad += not holds
            if changed and holds and good > bad / 2:
                continue  # there are more than enough of them
            good += changed and holds
            yield Case(made, "written" if not changed else "right" if holds else "wrong", truth)


class Found(NamedTuple):
    case: Case
    data: str
    verdict: str  # "" as it should be, "false", "missed", "gone" and "mixed" (true as
    # `Truth.holds` may be asked, of what no variable holds in the end, or of no one variable in the beginning),
    # "open" (nobody knows) or "crash"
    told: str
    text: str = ""

    def __str__(self):
        what = f"{self.verdict}: {self.case.kind} {self.case.program.name} with {self.data}: {self.told}"
        return f"=== {what}\n{self.text or self.case.program.on(self.data)}"


def run(gang, texts: list[str], ranks: int) -> list[Recording | str]:
    """The recording of each program, or the error it ended with."""
    answers = gang.run(f"TEXTS = {texts!r}{MANY}", ranks, record=False, keep=["tapes", "errors"])
    if any(answer["error"] for answer in answers):
        if len(texts) == 1:
            return ["; ".join(answer["error"] for answer in answers)]
        half = len(texts) // 2
        return run(gang, texts[:half], ranks) + run(gang, texts[half:], ranks)
    return [
        _read([answer["keep"]["tapes"][i] for answer in answers], {answer["keep"]["errors"][i] for answer in answers})
        for i in range(len(texts))
    ]


def in_styles(gang, wanted: int, ranks: int, seed: int, styles=tuple(STYLES), batch: int = 100):
    """Yields what was Found for programs of which each is held in one of the styles, until `wanted` wrong ones of each
    style were tried."""
    rng = random.Random(f"{seed} {ranks} styles")
    made = cases(rng, wanted * len(styles), ranks)
    turn = itertools.cycle(styles)
    while some := [(case, next(turn)) for case in itertools.islice(made, batch)]:
        texts = []
        for case, style in some:
            data = DATA[rng.choice(("ints", "floats", "origin"))].format(seed=case.program.seed)
            texts.append(f"{case.program.head()}{data}\n{styled(style, case.program.body)}")
        for (case, style), text, result in zip(some, texts, run(gang, texts, ranks), strict=True):
            yield judged(case, style, result)._replace(text=text)


def _read(tapes: list[dict], errors: set[str]):
    if errors != {""}:
        return f"the program raised {errors}"
    try:
        return Recording(tapes)
    except Exception:
        return f"no Recording: {traceback.format_exc()}"


def judged(case: Case, data: str, recording) -> Found:
    """What to think of the name that a run has got."""
    if isinstance(recording, str):
        return Found(case, data, "crash", recording)
    name, told = recording.collective, f"{recording.title!r}, root {recording.root}"
    if name != "recorded":
        holds = case.truth.holds(name, recording.root)
        if not holds:
            for verdict in ("gone", "mixed"):
                mixed = verdict == "mixed"
                if mixed and case.program.ranks > 4:
                    break  # too many ways to mix them
                if holds is False and case.truth.holds(name, recording.root, not mixed, mixed):
                    return Found(case, data, verdict, told)
            return Found(case, data, "open" if holds is None else "false", told)
        try:
            recording.check()
        except Exception as error:
            return Found(case, data, "crash", f"{told}, but check() says {error}")
    if case.kind != "wrong" and (name, recording.root) != (case.program.collective, case.program.root):
        return Found(case, data, "missed", told)
    return Found(case, data, "", told)


def search(gang, wanted: int, ranks: int, seed: int, data=tuple(DATA), batch: int = 200):
    """Yields what was Found for every program and every kind of data."""
    made = cases(random.Random(f"{seed} {ranks}"), wanted, ranks)
    while some := list(itertools.islice(made, max(1, batch // len(data)))):
        jobs = [(case, kind) for case in some for kind in data]
        results = run(gang, [case.program.on(kind) for case, kind in jobs], ranks)
        yield from (judged(*job, result) for job, result in zip(jobs, results, strict=True))


class Table:
    """Counts by kind of data, or by style."""

    def __init__(self, rows=tuple(DATA)):
        self.rows, self.counts = rows, collections.Counter()

    def add(self, found: Found):
        self.counts[found.data, found.case.kind] += 1
        self.counts[found.data, found.case.kind, found.verdict] += 1

    def named(self, data: str, kind: str) -> float:
        """The share of right programs that got their name."""
        of = self.counts[data, kind]
        return self.counts[data, kind, ""] / of if of else 1.0

    def __str__(self):
        heads = ("wrong", "false", "gone", "mixed", "open", "crash", "right", "named", "changed", "named")
        wide = max(map(len, self.rows)) + 1
        lines = [" " * wide + "".join(f"{head:>8}" for head in heads)]
        for data in self.rows:
            bad = [sum(self.counts[data, k, v] for k in ("wrong", "written", "right")) for v in heads[1:6]]
            lines.append(
                f"{data:{wide}}{self.counts[data, 'wrong']:8}"
                + "".join(f"{count:8}" for count in bad)
                + f"{self.counts[data, 'written']:8}{self.named(data, 'written'):8.1%}"
                f"{self.counts[data, 'right']:8}{self.named(data, 'right'):8.1%}"
            )
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wrong", type=int, default=300, help="wrong programs in all, each with every kind of data")
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--styles", action="store_true", help="each program in one style, with one kind of data")
    parser.add_argument("--out", default="search.txt", help="where failures are written")
    options = parser.parse_args()
    ranks = [int(text) for text in options.ranks.split(",")]
    table = Table(tuple(STYLES) if options.styles else tuple(DATA))
    with Gang() as gang, open(options.out, "w") as out:
        for p in ranks:
            share = options.wrong // len(ranks)
            styles = in_styles(gang, max(1, share // len(STYLES)), p, options.seed)
            for found in styles if options.styles else search(gang, share, p, options.seed):
                table.add(found)
                if found.verdict:
                    print(found, file=out, flush=True)
            print(f"{p} ranks done", file=sys.stderr)
        print(table, file=out)
    print(table)


if __name__ == "__main__":
    main()
