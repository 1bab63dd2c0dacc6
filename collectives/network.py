"""Networks to send schedules over: a flat one (`Network`), or links that ranks share (`Topology`).

Both answer one question: how long does a step take? Every message goes over a number of links, at the same time as the
other messages of the step.

- A link is busy for beta seconds per byte, and all messages of the step that use it share that.
- A rank issues its messages on a link one after the other, alpha seconds each; ranks do not wait for each other.
- The step lasts as long as its busiest link, plus gamma seconds per byte for the rank that has most to add.

On the flat network each rank has one link out and one link in (full duplex), so a rank that sends k messages of b bytes
needs k (alpha + b beta): that is the model behind MPICH's cost formulas (Thakur, Rabenseifner and Gropp 2005).

Units: alpha in seconds per message, beta in seconds per byte (1 / bandwidth, never the bandwidth), gamma in seconds per
byte added. Left out: packets, congestion inside switches, in-network reduction, overlap of one step with the next.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from collectives.errors import ScheduleError, whole
from collectives.traffic import Traffic, per_rank


@dataclass(frozen=True)
class Link:
    """One direction of a wire: `alpha` seconds per message, `beta` seconds per byte."""

    alpha: float
    beta: float

    def __post_init__(self):
        _check_seconds("Link", alpha=self.alpha, beta=self.beta)


class Loads(NamedTuple):
    """What one step puts on the links, one entry per link: seconds of latency, and units of data."""

    seconds: np.ndarray
    units: np.ndarray


@dataclass(frozen=True)
class Network:
    """Flat and full duplex: any two ranks reach each other alike, and each rank sends and receives at the same time."""

    alpha: float
    beta: float
    gamma: float = 0.0

    def __post_init__(self):
        _check_seconds("Network", alpha=self.alpha, beta=self.beta, gamma=self.gamma)

    def betas(self, ranks: int) -> np.ndarray:
        """Seconds per byte of every link: first the ranks' links out, then their links in."""
        return np.full(2 * ranks, self.beta)

    def names(self, ranks: int) -> list[str]:
        return [f"rank {rank} {way}" for way in ("out", "in") for rank in range(ranks)]

    def loads(self, traffic: Traffic, ranks: int) -> Loads:
        links = np.concatenate([traffic.src, traffic.dst + ranks])
        messages = np.bincount(links, minlength=2 * ranks)
        return Loads(self.alpha * messages, per_rank(links, np.concatenate([traffic.units] * 2), 2 * ranks))


class Hop(NamedTuple):
    """Message message[i] of a step uses link[i]; rank[i] is the end that issues or takes it there."""

    message: np.ndarray
    link: np.ndarray
    rank: np.ndarray


class Topology:
    """Ranks joined by named links that messages share. Made by `machines`, `ring` or `shared`.

    links        (name, beta) of every link
    hops         function(src, dst) -> Hops: which links the messages src[i] -> dst[i] go over
    alpha        function(src, dst) -> seconds of latency of each message
    local        ranks per machine, or None where there are no machines (for algorithms with levels)
    """

    def __init__(
        self, name: str, ranks: int, links, hops: Callable, alpha: Callable, gamma=0.0, local: int | None = None
    ):
        self.name, self.ranks, self.local, self.gamma = name, ranks, local, gamma
        self._names, self._betas = [link[0] for link in links], np.array([link[1] for link in links])
        self._hops, self._alpha = hops, alpha

    def __repr__(self):
        return f"Topology({self.name})"

    def betas(self, ranks: int) -> np.ndarray:
        return self._betas

    def names(self, ranks: int) -> list[str]:
        return self._names

    def loads(self, traffic: Traffic, ranks: int) -> Loads:
        alpha = self._alpha(traffic.src, traffic.dst)
        seconds, units = np.zeros((2, len(self._betas)))
        for message, link, rank in self._hops(traffic.src, traffic.dst):
            units += np.bincount(link, traffic.units[message], len(units))
            ends, end = np.unique(link * self.ranks + rank, return_inverse=True)
            np.maximum.at(seconds, ends // self.ranks, np.bincount(end, alpha[message], len(ends)))
        return Loads(seconds, units)

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
    ) -> "Topology":
        """`machines` times `gpus` ranks (rank = machine * gpus + gpu), a full switch inside and one between them.

        inside   every GPU's link to the switch in its machine, one such link out and one in
        between  the link of a network card, one out and one in
        nic      "gpu": every GPU has its own network card; "machine": the GPUs of a machine share one
        """
        machines = whole("Topology.machines", machines, "machines", 1)
        gpus = whole("Topology.machines", gpus, "gpus", 1)
        if nic not in ("gpu", "machine"):
            told = f'nic is "gpu" (a network card for each) or "machine" (one for all), got {nic!r}'
            raise ScheduleError(f"Topology.machines: {told}")
        ranks = machines * gpus
        cards, sharing = (ranks, 1) if nic == "gpu" else (machines, gpus)
        links = [(f"gpu {rank} {way}", inside.beta) for way in ("out", "in") for rank in range(ranks)]
        links += [(f"nic of {nic} {card} {way}", between.beta) for way in ("out", "in") for card in range(cards)]

        def hops(src, dst) -> Iterator[Hop]:
            near = src // gpus == dst // gpus
            here, there = np.flatnonzero(near), np.flatnonzero(~near)
            yield Hop(here, src[here], src[here])
            yield Hop(here, ranks + dst[here], dst[here])
            yield Hop(there, 2 * ranks + src[there] // sharing, src[there])
            yield Hop(there, 2 * ranks + cards + dst[there] // sharing, dst[there])

        def alpha(src, dst):
            return np.where(src // gpus == dst // gpus, inside.alpha, between.alpha)

        name = name or f"{machines} machines x {gpus} GPUs, one network card per {nic}"
        return cls(name, ranks, links, hops, alpha, gamma, local=gpus)

    @classmethod
    def ring(cls, ranks: int, link: Link, gamma: float = 0.0, name: str | None = None) -> "Topology":
        """Every rank is wired to its two neighbours, one link each way; longer ways go through the ranks between.

        A message takes the shorter way (to the right, if both are equal), and pays alpha for every hop.
        """
        ranks = whole("Topology.ring", ranks, "ranks", 2)
        links = [(f"{rank} to {(rank + side) % ranks}", link.beta) for side in (1, -1) for rank in range(ranks)]

        def way(src, dst):
            right = (dst - src) % ranks
            return np.where(2 * right <= ranks, right, right - ranks)

        def hops(src, dst) -> Iterator[Hop]:
            places = way(src, dst)
            for hop in range(int(abs(places).max(initial=0))):
                message = np.flatnonzero(abs(places) > hop)
                side = np.sign(places[message])
                yield Hop(message, (src[message] + side * hop) % ranks + np.where(side < 0, ranks, 0), src[message])

        def alpha(src, dst):
            return abs(way(src, dst)) * link.alpha

        return cls(name or f"ring of {ranks} ranks", ranks, links, hops, alpha, gamma)

    @classmethod
    def shared(cls, ranks: int, link: Link, gamma: float = 0.0, name: str | None = None) -> "Topology":
        """One medium for everybody, half duplex: whatever is sent by anybody goes over the same link (Wi-Fi, a bus)."""
        ranks = whole("Topology.shared", ranks, "ranks", 2)

        def hops(src, dst) -> Iterator[Hop]:
            yield Hop(np.arange(len(src)), np.zeros_like(src), src)

        def alpha(src, dst):
            return np.full(len(src), link.alpha)

        return cls(name or f"{ranks} ranks on one medium", ranks, [("medium", link.beta)], hops, alpha, gamma)


def check_network(network, ranks: int) -> None:
    """ScheduleError unless `network` is one, with room for `ranks` ranks; a flat one is as large as needed."""
    if not isinstance(network, Network | Topology):
        raise ScheduleError(f"network is a Network or a Topology, for example Network(1e-5, 1e-9), got {network!r}")
    if isinstance(network, Topology) and ranks > network.ranks:
        told = f"{network.name} has {network.ranks} ranks, the schedule has {ranks}"
        raise ScheduleError(f"{told}: take a larger network or fewer ranks")


def _check_seconds(name: str, **seconds: float) -> None:
    """The usual mix-up is a bandwidth where seconds per byte are meant; no network needs a second for a byte."""
    for field, value in seconds.items():
        if value < 0:
            raise ScheduleError(f"{name}: {field} is in seconds and not negative, got {value}")
        if field != "alpha" and value > 1:
            raise ScheduleError(
                f"{name}: {field} is seconds per byte, 1 / bandwidth, got {value}; is that a bandwidth?"
            )
