"""Bytes and seconds as a reader sees them: three digits and the unit, powers of 1000.

Left out: what people type, which is read in the browser (widgets/js/quantity.js).
"""

from __future__ import annotations

from collections.abc import Sequence


def size(nbytes: float) -> str:
    """1500 -> "1.5 kB"."""
    return _scaled(nbytes, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def rate(bytes_per_second: float) -> str:
    """12.5e6 -> "12.5 MB/s"."""
    return f"{size(bytes_per_second)}/s"


def duration(seconds: float) -> str:
    """0.0015 -> "1.5 ms"."""
    return _scaled(seconds, ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")))


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """`value` in the first unit of which it is at least one (once rounded), else in the last."""
    factor, unit = next((pair for pair in units if value >= 0.9995 * pair[0]), units[-1])
    return f"{float(f'{value / factor:.3g}'):g} {unit}"
