"""Networks one can name, with the source of every number. Bandwidths are those of data sheets unless it says effective.

`played(name, ranks)` gives those that a laptop can play (`%%ranks 4 --network ethernet`). They run in slow motion: all
times are longer by one factor, which their names say, so that which algorithm wins at which N stays what it is.

Latencies are what NCCL's own model assumes per step of a ring with the Simple protocol (NCCL 2.28, src/graph/tuning.cc,
hwLatencies): NVLink 3.4, PCI 5.7 and network 14 microseconds. gamma is 0: on a GPU adding costs less than moving.
"""

from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple

from collectives.errors import ScheduleError
from collectives.network import Link, Network, Topology

NVLINK_4 = Link(alpha=3.4e-6, beta=1 / 450e9)  # H100: 900 GB/s, both directions together (NVIDIA H100 data sheet)
NDR_INFINIBAND = Link(alpha=14e-6, beta=1 / 50e9)  # ConnectX-7: 400 Gbit/s each way
ETHERNET_100G = Link(alpha=14e-6, beta=1 / 12.5e9)  # 100 Gbit/s each way
PCIE_4_X16 = Link(alpha=5.7e-6, beta=1 / 31.5e9)  # 16 GT/s * 16 lanes * 128/130 / 8 bits (PCI Express 4.0)
TPU_V5E_ICI = Link(alpha=1e-6, beta=1 / 50e9)  # 400 GB/s per chip, both directions of 4 links (Cloud TPU docs, v5e)
WIFI_6 = Link(alpha=2e-3, beta=1 / 45e6)  # see laptops_on_wifi
GIGABIT_ETHERNET = Link(alpha=100e-6, beta=1 / 125e6)  # 1 Gbit/s each way; 100 microseconds through TCP (an estimate)
TEN_GIGABIT_ETHERNET = Link(alpha=50e-6, beta=1 / 1.25e9)  # 10 Gbit/s each way; the latency is an estimate too

SLOW, VERY_SLOW = 10, 1000  # by what times are longer where a laptop plays a network

# Through a switch that adds on the way. NCCL assumes 25 microseconds for all of NVLS, and 31 for a network with SHARP
# (hwLatencies: NVLS, CollNetDirect); each has two steps.
NVLS = Link(alpha=12.5e-6, beta=NVLINK_4.beta)
SHARP = Link(alpha=15.5e-6, beta=NDR_INFINIBAND.beta)

# What is left for data, measured. NVLink: "with the protocol overhead (~20 %) ... 370 GB/s", and with NVLS "busBw of
# ~480 GB/s", which on 8 GPUs is N / 274 GB/s (Jeaugey, NVIDIA/nccl-tests issue 212). Network: 24 GB/s of 200 Gbit/s
# (Jeaugey, issue 119), so 48 of 400; assumed for SHARP, too.
EFFECTIVE = {NVLINK_4: 370e9, NDR_INFINIBAND: 48e9, NVLS: 480e9 / (2 * 7 / 8), SHARP: 48e9}


class Protocol(NamedTuple):
    """How NCCL puts data on a wire: seconds per step on NVLink and on the network, the share of the bandwidth that is
    left for data, and seconds per call (hwLatencies of Ring, baseLatencies; NCCL 2.28, src/graph/tuning.cc)."""

    nvlink: float
    network: float
    share: float
    call: float


PROTOCOLS = {
    "LL": Protocol(0.6e-6, 2.7e-6, 4 / 8, 6.6e-6),  # 4 of 8 bytes are a flag: who reads needs no other sign
    "LL128": Protocol(1.9e-6, 4e-6, 120 / 128, 14e-6),  # 8 of 128 bytes, where NVLink keeps 128 bytes together
    "Simple": Protocol(3.4e-6, 14e-6, 1, 8.4e-6),  # data alone, and a signal when a whole slice is there
}


def dgx_h100(machines: int = 4, protocol: str = "Simple", effective: bool = False, sharp: bool = False) -> Topology:
    """DGX H100: 8 GPUs on NVLink 4 and NVSwitch, a 400 Gbit/s NIC for each GPU (NVIDIA DGX H100 data sheet).

    With 4 machines these are the 32 GPUs of "The physics of data movement". The switches inside can add (NVLS); with
    `sharp` those between the machines can, too.

    protocol   "LL", "LL128" or "Simple": what a step costs, and what share of the bandwidth is left
    effective  the bandwidths that NCCL reaches, instead of those of the data sheets
    """
    if protocol not in PROTOCOLS:
        raise ScheduleError(f"protocol is one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    inside, between = (_link(link, protocol, effective) for link in (NVLINK_4, NDR_INFINIBAND))
    name = f"{machines} x DGX H100{', effective' if effective else ''}{'' if protocol == 'Simple' else f', {protocol}'}"
    return Topology.machines(
        machines,
        gpus=8,
        inside=inside,
        between=between,
        name=name,
        adds_inside=_link(NVLS, "Simple", effective),
        adds_between=_link(SHARP, "Simple", effective) if sharp else None,
    )


def _link(link: Link, protocol: str, effective: bool) -> Link:
    """The link as this protocol uses it; it cannot be used for what switches add, which is always Simple."""
    how, beta = PROTOCOLS[protocol], 1 / EFFECTIVE[link] if effective else link.beta
    alpha = {NVLINK_4: how.nvlink, NDR_INFINIBAND: how.network}.get(link, link.alpha)
    return Link(alpha, beta / how.share)


def gpus_on_ethernet(machines: int = 4, gpus: int = 8) -> Topology:
    """Machines whose GPUs have NVLink among themselves, but share one 100 Gbit/s Ethernet NIC."""
    name = f"{machines} machines x {gpus} GPUs on 100G Ethernet"
    return Topology.machines(machines, gpus, inside=NVLINK_4, between=ETHERNET_100G, nic="machine", name=name)


def pcie_box(gpus: int = 4) -> Topology:
    """One machine, no NVLink: every GPU on 16 lanes of PCI Express 4.0 to one switch."""
    return Topology.machines(1, gpus, inside=PCIE_4_X16, between=PCIE_4_X16, name=f"PCIe box, {gpus} GPUs")


def tpu_ring(chips: int = 16) -> Topology:
    """One ring (one axis of the torus) of TPU v5e chips; a hop takes about a microsecond (an estimate)."""
    return Topology.ring(chips, TPU_V5E_ICI, name=f"ring of {chips} TPU v5e")


def tpu_torus(rows: int = 4, columns: int = 4) -> Topology:
    """Both axes: a slice of TPU v5e chips whose ends are joined (which they are from 16 x 16 on)."""
    return Topology.torus(rows, columns, TPU_V5E_ICI, name=f"torus of {rows} x {columns} TPU v5e")


def laptops_on_wifi(laptops: int = 2) -> Topology:
    """Laptops in one room: one radio channel for all, half duplex, and every byte goes over it twice (access point).

    An estimate: Wi-Fi 6 with two streams in 80 MHz is 1201 Mbit/s (IEEE 802.11ax); about 60 % of it is left for data,
    and half of that because of the two ways. 2 milliseconds per message.
    """
    return Topology.shared(laptops, WIFI_6, name=f"{laptops} laptops on Wi-Fi")


def _flat(link: Link, name: str, times: int) -> Network:
    said = f"{name}, {times:,} times slower"
    return Network(link.alpha * times, link.beta * times, name=said)


PLAYED: dict[str, Callable[[int], Network | Topology]] = {
    "wifi": lambda ranks: Topology.shared(max(ranks, 2), WIFI_6, name="wifi").slower(SLOW),
    "ethernet": lambda ranks: _flat(GIGABIT_ETHERNET, "ethernet", SLOW),
    "10GbE": lambda ranks: _flat(TEN_GIGABIT_ETHERNET, "10GbE", SLOW),
    "infiniband": lambda ranks: _flat(NDR_INFINIBAND, "infiniband", VERY_SLOW),
    "nvlink": lambda ranks: _flat(NVLINK_4, "nvlink", VERY_SLOW),
    "gpus": lambda ranks: Topology.machines(
        2, max(1, -(-ranks // 2)), NVLINK_4, NDR_INFINIBAND, name="2 machines, nvlink inside, infiniband between"
    ).slower(VERY_SLOW),
}
"""name -> function of the number of ranks. Ten times slower than they are: wifi (4.5 MB/s), ethernet (12.5) and 10GbE
(125); a thousand times: infiniband (50), nvlink (450), and "gpus", two machines with nvlink inside and infiniband
between them."""


def played(name: str, ranks: int) -> Network | Topology:
    """The network of that name for `ranks` ranks, as slow as a laptop needs it. ScheduleError for any other name."""
    exact = {known.lower(): known for known in PLAYED}.get(name.lower())
    if exact is None:
        close = get_close_matches(name.lower(), [known.lower() for known in PLAYED], n=1)
        meant = f"; did you mean {next(known for known in PLAYED if known.lower() == close[0])}?" if close else ""
        raise ScheduleError(f"there is no network {name!r}: there are {', '.join(PLAYED)}{meant}")
    return PLAYED[exact](ranks)
