"""Networks to send schedules over: a flat one (`Network`), or links that ranks share (`Topology`).

Both answer one question: how long does a step take? Every message goes over a number of links, at the same time as the
other messages of the step.

- A link is busy for beta seconds per byte, and all messages of the step that use it share that.
- A rank issues its messages on a link one after the other, alpha seconds each; ranks do not wait for each other.
- The step lasts as long as its busiest link, plus gamma seconds per byte for the rank that has most to add.

On the flat network each rank has one link out and one link in (full duplex), so a rank that sends k messages of b bytes
needs k (alpha + b beta): that is the model behind MPICH's cost formulas (Thakur, Rabenseifner and Gropp 2005).

Units: alpha in seconds per message, beta in seconds per byte (1 / bandwidth, never the bandwidth), gamma in seconds per
byte added. A switch that adds or copies on the way (`Switch`) carries what many ranks send to one place, or one to
many, once. Left out: packets and congestion inside switches; steps that overlap are `collectives.pipelined`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from collectives.errors import ScheduleError, whole
from collectives.traffic import Traffic, firsts, of_pairs, per_rank


@dataclass(frozen=True)
class Link:
    """One direction of a wire: `alpha` seconds per message, `beta` seconds per byte."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        _check_seconds("Link", alpha=self.alpha, beta=self.beta)

    def slower(self, times: float) -> "Link":
        """The same in slow motion: latency and bytes take `times` as long."""
        return Link(self.alpha * times, self.beta * times)


class Loads(NamedTuple):
    """What one step puts on the links, one entry per link: seconds of latency, units of data, and how many seconds
    these take if a unit is one byte."""

    seconds: np.ndarray
    units: np.ndarray
    slopes: np.ndarray


@dataclass(frozen=True)
class Network:
    """Flat and full duplex: any two ranks reach each other alike, and each rank sends and receives at the same time.

    `name` is what to call it, where it has a name ("ethernet"); two networks are equal whatever they are called.
    """

    alpha: float
    beta: float
    gamma: float = 0.0
    name: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_seconds("Network", alpha=self.alpha, beta=self.beta, gamma=self.gamma)

    def betas(self, ranks: int) -> np.ndarray:
        """Seconds per byte of every link: first the ranks' links out, then their links in."""
        return np.full(2 * ranks, self.beta)

    def names(self, ranks: int) -> list[str]:
        return [f"rank {rank} {way}" for way in ("out", "in") for rank in range(ranks)]

    def loads(self, traffic: Traffic, ranks: int) -> Loads:
        _check_merged(traffic, np.arange(len(traffic.src)), "a flat Network")
        links = np.concatenate([traffic.src, traffic.dst + ranks])
        messages = np.bincount(links, minlength=2 * ranks)
        units = per_rank(links, np.concatenate([traffic.units] * 2), 2 * ranks)
        return Loads(self.alpha * messages, units, units * self.beta)

    def alphas(self, src: np.ndarray, dst: np.ndarray, in_network: bool) -> np.ndarray:
        """Seconds of latency of each message."""
        return np.full(len(src), self.alpha)

    def way(self, src: int, dst: int, ranks: int) -> "Way":
        """How a message gets from rank `src` to rank `dst`."""
        return Way(self.alpha, [(src, src), (ranks + dst, dst)])

    def slower(self, times: float) -> "Network":
        """The same in slow motion: latency and bytes take `times` as long, and algorithms keep their order."""
        return replace(self, alpha=self.alpha * times, beta=self.beta * times)


class Way(NamedTuple):
    """What one message meets: `alpha` seconds of latency, and its links, each with the rank that uses it."""

    alpha: float
    links: list[tuple[int, int]]


class Hop(NamedTuple):
    """Message message[i] of a step uses link[i]; rank[i] is the end that issues or takes it there."""

    message: np.ndarray
    link: np.ndarray
    rank: np.ndarray


class Switch(NamedTuple):
    """A switch that adds up what ranks send to one place, and copies what one sends to many (NVLS, SHARP).

    covers(src, dst) says which messages may go through it; over out(rank) a rank sends to it and over into(rank) it
    receives. A rank that uses it in a step pays link.alpha once, and link.beta for each byte it gives or gets itself.
    """

    link: Link
    covers: Callable[[np.ndarray, np.ndarray], np.ndarray]
    out: Callable[[np.ndarray], np.ndarray]
    into: Callable[[np.ndarray], np.ndarray]


class Topology:
    """Ranks joined by named links that messages share. Made by `machines`, `ring`, `torus` or `shared`.

    links        (name, beta) of every link
    hops         function(src, dst) -> Hops: which links the messages src[i] -> dst[i] go over
    alpha        function(src, dst) -> seconds of latency of each message
    local        ranks per machine, or per row of a torus, for algorithms with levels; None where there are none
    kind         "machines", "ring" or "shared", which says in what order the links are; None for one made by hand, and
                 for a torus, which TopologyMap does not draw
    switches     those that add on the way, for schedules that are `in_network`
    """

    def __init__(
        self,
        name: str,
        ranks: int,
        links: list[tuple[str, float]],
        hops: Callable[[np.ndarray, np.ndarray], Iterable[Hop]],
        alpha: Callable[[np.ndarray, np.ndarray], np.ndarray],
        gamma: float = 0.0,
        local: int | None = None,
        kind: str | None = None,
        switches: Sequence[Switch] = (),
    ) -> None:
        self.switches = tuple(switches)
        self.name, self.ranks, self.local, self.gamma, self.kind = name, ranks, local, gamma, kind
        self._names, self._betas = [link[0] for link in links], np.array([link[1] for link in links])
        self._hops, self._alpha = hops, alpha

    def __repr__(self) -> str:
        return f"Topology({self.name})"

    def betas(self, ranks: int) -> np.ndarray:
        return self._betas

    def names(self, ranks: int) -> list[str]:
        return self._names

    def loads(self, traffic: Traffic, ranks: int) -> Loads:
        if traffic.copies is not None:
            return self._through_switches(traffic)
        alpha = self._alpha(traffic.src, traffic.dst)
        seconds, units = np.zeros((2, len(self._betas)))
        for message, link, rank in self._hops(traffic.src, traffic.dst):
            units += np.bincount(link, traffic.units[message], len(units))
            ends, end = np.unique(link * self.ranks + rank, return_inverse=True)
            np.maximum.at(seconds, ends // self.ranks, np.bincount(end, alpha[message], len(ends)))
        return Loads(seconds, units, units * self._betas)

    def _through_switches(self, traffic: Traffic) -> Loads:
        """Of what a switch copies its rank sends one, of what it adds up the other end receives one."""
        assert traffic.copies is not None and traffic.sums is not None
        rest = np.arange(len(traffic.src))
        seconds, units, slopes = np.zeros((3, len(self._betas)))
        for switch in self.switches:
            covered = switch.covers(traffic.src[rest], traffic.dst[rest])
            here, rest = rest[covered], rest[~covered]
            out, into = here[firsts(traffic.copies[here])], here[firsts(traffic.sums[here])]
            link = np.concatenate([switch.out(traffic.src[out]), switch.into(traffic.dst[into])])
            load = np.bincount(link, traffic.units[np.concatenate([out, into])], len(units))
            units, slopes = units + load, slopes + load * switch.link.beta
            seconds[link] = switch.link.alpha
        _check_merged(traffic, rest, self.name)
        plain = self.loads(of_pairs(traffic, rest, self.ranks), self.ranks)
        return Loads(np.maximum(seconds, plain.seconds), units + plain.units, slopes + plain.slopes)

    def alphas(self, src: np.ndarray, dst: np.ndarray, in_network: bool) -> np.ndarray:
        """Seconds of latency of each message."""
        alpha = self._alpha(src, dst)
        for switch in self.switches if in_network else ():
            alpha = np.where(switch.covers(src, dst), switch.link.alpha, alpha)
        return alpha

    def way(self, src: int, dst: int, ranks: int) -> Way:
        """How a message gets from rank `src` to rank `dst`."""
        ends = np.array([src]), np.array([dst])
        links = [(int(hop.link[0]), int(hop.rank[0])) for hop in self._hops(*ends) if len(hop.link)]
        return Way(float(self._alpha(*ends)[0]), links)

    def slower(self, times: float) -> "Topology":
        """The same in slow motion: latency and bytes take `times` as long, and algorithms keep their order."""
        links = list(zip(self._names, (self._betas * times).tolist(), strict=True))
        alpha = self._alpha
        return Topology(
            f"{self.name}, {times:,g} times slower",
            self.ranks,
            links,
            self._hops,
            lambda src, dst: alpha(src, dst) * times,
            self.gamma,
            self.local,
            self.kind,
            [switch._replace(link=switch.link.slower(times)) for switch in self.switches],
        )

    @classmethod
    def machines(
        cls,
        machines: int,
        gpus: int,
        inside: Link,
        between: Link,
        nic: str = "gpu",
        gamma: float = 0.0,
        name: str | None = None,
        adds_inside: Link | None = None,
        adds_between: Link | None = None,
    ) -> "Topology":
        """`machines` times `gpus` ranks (rank = machine * gpus + gpu), a full switch inside and one between them.

        inside   every GPU's link to the switch in its machine, one such link out and one in
        between  the link of a NIC (network interface), one out and one in
        nic      "gpu": every GPU has its own NIC; "machine": the GPUs of a machine share one
        adds_inside, adds_between  what a switch there takes that adds on the way (see `Switch`); None: it does not add

        Its links are those out of all GPUs, those into all GPUs, those out of all NICs, those into all NICs.
        """
        machines = whole("Topology.machines", machines, "machines", 1)
        gpus = whole("Topology.machines", gpus, "gpus", 1)
        if nic not in ("gpu", "machine"):
            wrong = f'nic is "gpu" (a NIC for each) or "machine" (one for all), got {nic!r}'
            raise ScheduleError(f"Topology.machines: {wrong}")
        ranks = machines * gpus
        nics, sharing = (ranks, 1) if nic == "gpu" else (machines, gpus)
        links = [(f"gpu {rank} {way}", inside.beta) for way in ("out", "in") for rank in range(ranks)]
        links += [(f"nic of {nic} {number} {way}", between.beta) for way in ("out", "in") for number in range(nics)]

        def same(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
            inside: np.ndarray = src // gpus == dst // gpus
            return inside

        def hops(src: np.ndarray, dst: np.ndarray) -> Iterator[Hop]:
            near = same(src, dst)
            here, there = np.flatnonzero(near), np.flatnonzero(~near)
            yield Hop(here, src[here], src[here])
            yield Hop(here, ranks + dst[here], dst[here])
            yield Hop(there, 2 * ranks + src[there] // sharing, src[there])
            yield Hop(there, 2 * ranks + nics + dst[there] // sharing, dst[there])

        def alpha(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
            return np.where(same(src, dst), inside.alpha, between.alpha)

        name = name or f"{machines} machines x {gpus} GPUs, one network card per {nic}"
        switches = [] if adds_inside is None else [Switch(adds_inside, same, lambda r: r, lambda r: ranks + r)]
        if adds_between is not None:
            out, into = (lambda r: 2 * ranks + r // sharing), (lambda r: 2 * ranks + nics + r // sharing)
            switches.append(Switch(adds_between, lambda src, dst: ~same(src, dst), out, into))
        return cls(name, ranks, links, hops, alpha, gamma, local=gpus, kind="machines", switches=switches)

    @classmethod
    def ring(cls, ranks: int, link: Link, gamma: float = 0.0, name: str | None = None) -> "Topology":
        """Every rank is wired to its two neighbours, one link each way; longer ways go through the ranks between.

        A message takes the shorter way (to the right, if both are equal), and pays alpha for every hop. The links are
        those of all ranks to the right, then those of all ranks to the left.
        """
        ranks = whole("Topology.ring", ranks, "ranks", 2)
        links = [(f"{rank} to {(rank + side) % ranks}", link.beta) for side in (1, -1) for rank in range(ranks)]

        def way(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
            right: np.ndarray = (dst - src) % ranks
            return np.where(2 * right <= ranks, right, right - ranks)

        def hops(src: np.ndarray, dst: np.ndarray) -> Iterator[Hop]:
            places = way(src, dst)
            for hop in range(int(abs(places).max(initial=0))):
                message = np.flatnonzero(abs(places) > hop)
                side = np.sign(places[message])
                yield Hop(message, (src[message] + side * hop) % ranks + np.where(side < 0, ranks, 0), src[message])

        def alpha(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
            return abs(way(src, dst)) * link.alpha

        return cls(name or f"ring of {ranks} ranks", ranks, links, hops, alpha, gamma, kind="ring")

    @classmethod
    def torus(cls, rows: int, columns: int, link: Link, gamma: float = 0.0, name: str | None = None) -> "Topology":
        """`rows` times `columns` ranks (rank = row * columns + column), each wired to four neighbours, round the ends.

        A message goes along its row first, then along the column, the shorter way each (to the right and down, if both
        are equal), and pays alpha for every hop. The links are those of all ranks to the right, to the left, down, up.
        """
        rows, columns = whole("Topology.torus", rows, "rows", 2), whole("Topology.torus", columns, "columns", 2)
        ranks = rows * columns
        places = [divmod(rank, columns) for rank in range(ranks)]
        links = [
            (f"{y * columns + x} to {(y + down) % rows * columns + (x + right) % columns}", link.beta)
            for right, down in ((1, 0), (-1, 0), (0, 1), (0, -1))
            for y, x in places
        ]

        def ways(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """Places to the right and places down, negative the other way."""
            right, down = (dst - src) % columns, (dst // columns - src // columns) % rows
            return (
                np.where(2 * right <= columns, right, right - columns),
                np.where(2 * down <= rows, down, down - rows),
            )

        def hops(src: np.ndarray, dst: np.ndarray) -> Iterator[Hop]:
            right, down = ways(src, dst)
            for hop in range(int(abs(right).max(initial=0))):
                message = np.flatnonzero(abs(right) > hop)
                side = np.sign(right[message])
                row, column = np.divmod(src[message], columns)
                at = row * columns + (column + side * hop) % columns
                yield Hop(message, at + np.where(side < 0, ranks, 0), src[message])
            for hop in range(int(abs(down).max(initial=0))):
                message = np.flatnonzero(abs(down) > hop)
                side = np.sign(down[message])
                at = (src[message] // columns + side * hop) % rows * columns + dst[message] % columns
                yield Hop(message, at + np.where(side < 0, 3 * ranks, 2 * ranks), src[message])

        def alpha(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
            right, down = ways(src, dst)
            return (abs(right) + abs(down)) * link.alpha

        return cls(name or f"torus of {rows} x {columns} ranks", ranks, links, hops, alpha, gamma, local=columns)

    @classmethod
    def shared(cls, ranks: int, link: Link, gamma: float = 0.0, name: str | None = None) -> "Topology":
        """One medium for all ranks, half duplex: every message goes over the same link (Wi-Fi, a bus)."""
        ranks = whole("Topology.shared", ranks, "ranks", 2)

        def hops(src: np.ndarray, dst: np.ndarray) -> Iterator[Hop]:
            yield Hop(np.arange(len(src)), np.zeros_like(src), src)

        def alpha(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
            return np.full(len(src), link.alpha)

        links = [("medium", link.beta)]
        return cls(name or f"{ranks} ranks on one medium", ranks, links, hops, alpha, gamma, kind="shared")


def check_network(network: object, ranks: int) -> None:
    """ScheduleError unless `network` is one, with room for `ranks` ranks; a flat one is as large as needed."""
    if not isinstance(network, Network | Topology):
        raise ScheduleError(f"network is a Network or a Topology, for example Network(1e-5, 1e-9), got {network!r}")
    if isinstance(network, Topology) and ranks > network.ranks:
        wrong = f"{network.name} has {network.ranks} ranks, and {ranks} are needed"
        raise ScheduleError(f"{wrong}: take a larger network or fewer ranks")


def _check_merged(traffic: Traffic, messages: np.ndarray, name: str) -> None:
    """ScheduleError if a switch would have to copy or add some of these messages on the way."""
    for groups in (traffic.copies, traffic.sums):
        if groups is not None and len(firsts(groups[messages])) < len(messages):
            raise ScheduleError(
                f"{name} has no switch that adds on the way between all these ranks; presets.dgx_h100(1) has one"
            )


def _check_seconds(name: str, **seconds: float) -> None:
    """The usual mix-up is a bandwidth where seconds per byte are meant; no network needs a second for a byte."""
    for what, value in seconds.items():
        if value < 0:
            raise ScheduleError(f"{name}: {what} is in seconds and not negative, got {value}")
        if not np.isfinite(value):
            raise ScheduleError(f"{name}: {what} is in seconds and finite, got {value}")
        if what != "alpha" and value > 1:
            raise ScheduleError(f"{name}: {what} is seconds per byte, 1 / bandwidth, got {value}; is that a bandwidth?")
