"""A small world of ranks that make calls, written without looking at the doctor: the oracle of its tests.

Ranks run programs of collectives and messages, step by step in any order. Messages are a rendezvous, collectives are
over when gloo would let go of them. `views` says what the flight recorder would say. `hopeless` finds out by
trying who can never go on: every rank that may act does everything that could help anybody, over and over, until
nothing changes any more.
"""

import copy
import random
from dataclasses import dataclass, field

from launch.doctor.snapshot import Ending, How, State, View
from launch.shared.flight_recorder import MessageTally, OpenCall, Tally

NAMES = ("all_reduce", "barrier", "all_gather")
ROOTED = ("broadcast", "gather", "scatter")
HELP = 4  # more calls of one kind than any program of a test makes


@dataclass
class Made:
    """A call that a rank has begun."""

    kind: str
    key: int  # index of the group
    seq: int
    peer: int
    tag: int
    name: str
    ticket: int
    over: bool = False  # somebody has waited for it


@dataclass
class Rank:
    program: list
    calls: list = field(default_factory=list)
    at: int = 0
    blocked: Made | None = None
    helps: bool = False
    tickets: int = 0

    @property
    def ended(self):
        return self.at >= len(self.program) and self.blocked is None


class World:
    """`programs` per rank: tuples ("all_reduce", group), ("broadcast", group, root), ("send", to, tag), ("recv", from,
    tag) and the same with an "i" in front, which do not block; ("wait", k) waits for the k-th call; ("work",) is
    Python."""

    def __init__(self, programs, groups):
        self.ranks = [Rank(list(program)) for program in programs]
        self.groups = groups

    def begin(self, rank, op):
        """The rank makes the call."""
        me, name = self.ranks[rank], op[0]
        blocking = not name.startswith("i")
        name = name.removeprefix("i")
        if name in ("send", "recv"):
            kind, key, peer, tag = name, 0, op[1], op[2]
            same = [c for c in me.calls if (c.kind, c.peer, c.tag) == (kind, peer, tag)]
        else:
            kind, key, peer, tag = "collective", op[1], op[2] if len(op) > 2 else -1, 0
            same = [c for c in me.calls if (c.kind, c.key) == (kind, key)]
        me.tickets += 1
        call = Made(kind, key, len(same) + 1, peer, tag, name, me.tickets)
        me.calls.append(call)
        if blocking:
            me.blocked = call

    def may_step(self, rank):
        me = self.ranks[rank]
        return self.finished(rank, me.blocked) if me.blocked is not None else not me.ended

    def step(self, rank):
        """One move of the rank; False if it cannot move."""
        me = self.ranks[rank]
        if me.blocked is not None:
            if not self.finished(rank, me.blocked):
                return False
            me.blocked.over, me.blocked = True, None
            return True
        if me.at >= len(me.program):
            return False
        op = me.program[me.at]
        me.at += 1
        if op[0] == "wait":
            call = me.calls[op[1]] if op[1] < len(me.calls) else None
            me.blocked = call if call is not None and not call.over else None
        elif op[0] != "work":
            self.begin(rank, op)
        return True

    def finished(self, rank, call):
        """Whether gloo would let this rank out of the call now."""
        if call.kind == "send":
            return call in [send for send, _ in self.matches(rank, call.peer, call.tag)]
        if call.kind == "recv":
            sources = [call.peer] if call.peer >= 0 else [r for r in range(len(self.ranks)) if r != rank]
            return any(call in [recv for _, recv in self.matches(source, rank, call.tag)] for source in sources)
        members = self.groups[call.key]
        parts = {m: self.part(m, call) for m in members}
        # What a call that is over was called is the guard's business, not the doctor's.
        here = {m for m, part in parts.items() if part is not None and (part.over or part.name in (call.name, "any"))}
        root = call.peer
        if call.name == "broadcast":
            turned = members[members.index(root) :] + members[: members.index(root)]
            return self.has(turned, turned.index(rank), here) and all(
                turned[c] in here for c in self.children(turned, rank)
            )
        if call.name in ("gather", "scatter") and rank != root:
            return root in here
        return here == set(members)

    def has(self, turned, place, here):
        """Whether the broadcast's data have come to this place of the binomial tree."""
        if turned[place] not in here:
            return False
        parent = next((p for p in range(place) if place in self.below(p, len(turned))), None)
        return parent is None or self.has(turned, parent, here)

    @staticmethod
    def below(place, size):
        """Round i: the first 2^i places have the data, and each hands it to the one 2^i further on."""
        have, below = 1, []
        while have < size:
            if place < have and place + have < size:
                below.append(place + have)
            have *= 2
        return below

    def children(self, turned, rank):
        return self.below(turned.index(rank), len(turned))

    def part(self, rank, call):
        return next(
            (c for c in self.ranks[rank].calls if (c.kind, c.key, c.seq) == ("collective", call.key, call.seq)), None
        )

    def matches(self, source, target, tag):
        """(send, recv) pairs from one rank to another, first with first; receives from any source take what is left."""
        sends = [c for c in self.ranks[source].calls if (c.kind, c.peer, c.tag) == ("send", target, tag)]
        recvs = [c for c in self.ranks[target].calls if c.kind == "recv" and c.peer in (source, -1) and c.tag == tag]
        return list(zip(sends, recvs, strict=False))

    def help(self, rank):
        """The rank does everything that might help anybody, without ever blocking."""
        for other in range(len(self.ranks)):
            for tag in (0, 1):
                for _ in range(HELP if other != rank else 0):
                    self.begin(rank, ("isend", other, tag))
                    self.begin(rank, ("irecv", other, tag))
        for key, members in enumerate(self.groups):
            for _ in range(HELP if rank in members else 0):
                self.begin(rank, ("iany", key))

    def hopeless(self):
        """Ranks that never get on, even if every rank that is free helps with all it can."""
        world = copy.deepcopy(self)
        while True:
            free = [
                r for r, rank in enumerate(world.ranks) if rank.blocked is None and not rank.ended and not rank.helps
            ]
            for r in free:
                world.ranks[r].helps = True
                world.ranks[r].program.append(("work",))  # never ends
                world.help(r)
            loose = [
                r for r, rank in enumerate(world.ranks) if rank.blocked is not None and world.finished(r, rank.blocked)
            ]
            if not free and not loose:
                return [r for r, rank in enumerate(world.ranks) if rank.blocked is not None]
            for r in loose:
                rank = world.ranks[r]
                rank.blocked, rank.at = None, min(rank.at, len(rank.program) - 1)  # acts, even if only to end

    def views(self):
        """What the driver would read."""
        return tuple(self.view(r) for r in range(len(self.ranks)))

    def view(self, r):
        rank = self.ranks[r]
        rows = {id(c): OpenCall(c.ticket, 1 + c.key, c.seq, 16, 0, c.peer, c.tag, c.ticket, c is rank.blocked,
                                c.kind, c.name, "float32[4]", cell=1)
                for c in rank.calls}  # fmt: skip
        groups = []
        for key, members in enumerate(self.groups):
            calls = [c for c in rank.calls if (c.kind, c.key) == ("collective", key)]
            if calls:
                label = "world" if len(members) == len(self.ranks) else "ranks " + ",".join(map(str, members))
                mask = f"{sum(1 << m for m in members):x}"
                groups.append(
                    Tally(1 + key, 1, len(calls), sum(c.over for c in calls), 0, 1, len(members), label, mask)
                )
        kinds = {(c.kind, c.peer, c.tag) for c in rank.calls if c.kind != "collective"}
        messages = []
        for kind, peer, tag in sorted(kinds):
            calls = [c for c in rank.calls if (c.kind, c.peer, c.tag) == (kind, peer, tag)]
            messages.append(MessageTally(1, 1, len(calls), sum(c.over for c in calls), peer, tag, kind))
        return View(
            r,
            State.WAITING if rank.blocked is not None else State.ENDED if rank.ended else State.ACTING,
            (rows[id(rank.blocked)],) if rank.blocked is not None else (),
            tuple(rows[id(c)] for c in rank.calls if not c.over),
            tuple(groups),
            tuple(messages),
            ending=Ending(How.LEFT) if rank.ended else None,
            cell=1,
        )


def settle(world, rng=None):
    """Lets all ranks run, in order or in a random one, until none can move. Returns the world."""
    rng = rng or random.Random(0)
    while True:
        movers = [r for r in range(len(world.ranks)) if world.step(r)]
        if not movers:
            return world
        rng.shuffle(movers)


def random_world(rng):
    """Two to five ranks, mostly sane programs with something left out, doubled or swapped."""
    size = rng.randint(2, 5)
    groups = [list(range(size))]
    for _ in range(rng.randint(0, 2)):
        groups.append(sorted(rng.sample(range(size), rng.randint(2, size))))
    programs = [[] for _ in range(size)]
    for _ in range(rng.randint(1, 6)):
        _sane_round(rng, programs, groups, size)
    for _ in range(rng.randint(0, 3)):
        _spoil(rng, rng.choice(programs))
    return World(programs, groups)


def _sane_round(rng, programs, groups, size):
    kind = rng.choice(("collective", "collective", "rooted", "pair", "ring", "iring", "work"))
    key = rng.randrange(len(groups))
    if kind == "collective":
        name, later = rng.choice(NAMES), rng.random() < 0.3
        for member in groups[key]:
            _append(programs[member], ("i" + name if later else name, key), later, rng)
    elif kind == "rooted":
        name, root = rng.choice(ROOTED), rng.choice(groups[key])
        for member in groups[key]:
            programs[member].append((name, key, root))
    elif kind == "pair":
        a, b = rng.sample(range(size), 2)
        tag = rng.randint(0, 1)
        _append(programs[a], ("isend" if (later := rng.random() < 0.5) else "send", b, tag), later, rng)
        _append(programs[b], ("irecv" if (later := rng.random() < 0.5) else "recv", a, tag), later, rng)
    elif kind in ("ring", "iring"):
        for r in range(size):
            later = kind == "iring"
            _append(programs[r], ("isend" if later else "send", (r + 1) % size, 0), later, rng)
            programs[r].append(("recv", (r - 1) % size, 0))
    else:
        rng.choice(programs).append(("work",))


def _append(program, op, later, rng):
    made = sum(step[0] not in ("wait", "work") for step in program)
    program.append(op)
    if later and rng.random() < 0.8:
        program.append(("wait", made))


def _spoil(rng, program):
    if not program:
        return
    at = rng.randrange(len(program))
    what = rng.choice(("drop", "double", "swap", "stop"))
    if what == "drop":
        del program[at]
    elif what == "double":
        program.insert(at, program[at])
    elif what == "swap":
        other = rng.randrange(len(program))
        program[at], program[other] = program[other], program[at]
    else:
        del program[at:]
