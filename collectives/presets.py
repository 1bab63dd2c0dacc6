"""Networks one can name, with the source of every number. Bandwidths are those of data sheets, so times are at best.

Latencies are what NCCL's own model assumes per step of a ring with the Simple protocol (NCCL 2.28, src/graph/tuning.cc,
hwLatencies): NVLink 3.4, PCI 5.7 and network 14 microseconds. gamma is 0: on a GPU adding costs less than moving.
"""

from collectives.network import Link, Topology

NVLINK_4 = Link(alpha=3.4e-6, beta=1 / 450e9)  # H100: 900 GB/s, both directions together (NVIDIA H100 data sheet)
NDR_INFINIBAND = Link(alpha=14e-6, beta=1 / 50e9)  # ConnectX-7: 400 Gbit/s each way
ETHERNET_100G = Link(alpha=14e-6, beta=1 / 12.5e9)  # 100 Gbit/s each way
PCIE_4_X16 = Link(alpha=5.7e-6, beta=1 / 31.5e9)  # 16 GT/s * 16 lanes * 128/130 / 8 bits (PCI Express 4.0)
TPU_V5E_ICI = Link(alpha=1e-6, beta=1 / 50e9)  # 400 GB/s per chip, both directions of 4 links (Cloud TPU docs, v5e)
WIFI_6 = Link(alpha=2e-3, beta=1 / 45e6)  # see laptops_on_wifi


def dgx_h100(machines: int = 4) -> Topology:
    """DGX H100: 8 GPUs on NVLink 4 and NVSwitch, a 400 Gbit/s card for each GPU (NVIDIA DGX H100 data sheet).

    With 4 machines these are the 32 GPUs of "The physics of data movement".
    """
    return Topology.machines(machines, gpus=8, inside=NVLINK_4, between=NDR_INFINIBAND, name=f"{machines} x DGX H100")


def gpus_on_ethernet(machines: int = 4, gpus: int = 8) -> Topology:
    """Machines whose GPUs have NVLink among themselves, but share one 100 Gbit/s Ethernet card."""
    name = f"{machines} machines x {gpus} GPUs on 100G Ethernet"
    return Topology.machines(machines, gpus, inside=NVLINK_4, between=ETHERNET_100G, nic="machine", name=name)


def pcie_box(gpus: int = 4) -> Topology:
    """One machine, no NVLink: every GPU on 16 lanes of PCI Express 4.0 to one switch."""
    return Topology.machines(1, gpus, inside=PCIE_4_X16, between=PCIE_4_X16, name=f"PCIe box, {gpus} GPUs")


def tpu_ring(chips: int = 16) -> Topology:
    """One ring (one axis of the torus) of TPU v5e chips; a hop takes about a microsecond (an estimate)."""
    return Topology.ring(chips, TPU_V5E_ICI, name=f"ring of {chips} TPU v5e")


def laptops_on_wifi(laptops: int = 2) -> Topology:
    """Laptops in one room: one radio channel for all, half duplex, and every byte goes over it twice (access point).

    An estimate: Wi-Fi 6 with two streams in 80 MHz is 1201 Mbit/s (IEEE 802.11ax); about 60 % of it is left for data,
    and half of that because of the two ways. 2 milliseconds per message.
    """
    return Topology.shared(laptops, WIFI_6, name=f"{laptops} laptops on Wi-Fi")
