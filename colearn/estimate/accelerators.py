"""Published memory sizes and matrix rates of accelerators. They allow time estimates for devices
that this machine lacks."""

from __future__ import annotations

from typing import NamedTuple

_TERA = 1e12


class Accelerator(NamedTuple):
    """Values of one device. The compute rate is the peak rate for dense matrices, from the
    manufacturer's data sheet."""

    name: str
    sold: float
    """Advertised memory in GB, as in the device's name."""
    gib: float
    """Total memory of the device in GiB, as reported by torch."""
    half: float
    """FLOP/s in bfloat16 and float16, with accumulation in float32."""


ACCELERATORS = (
    Accelerator("A100", 40.0, 39.3, 312 * _TERA),
    Accelerator("A100", 80.0, 79.1, 312 * _TERA),
    Accelerator("H100", 80.0, 79.1, 989.4 * _TERA),
    Accelerator("H200", 141.0, 139.7, 989.4 * _TERA),
    Accelerator("L40S", 48.0, 44.3, 362.05 * _TERA),
    Accelerator("RTX4090", 24.0, 23.5, 165.2 * _TERA),
    Accelerator("B200", 180.0, 178.3, 2250 * _TERA),
)


def accelerator(name: str, sold: float) -> Accelerator | None:
    """Return the device with this name (for example `H100-SXM` or `RTX-4090`) and this memory in
    GB; None if the device is not in the table."""
    plain = name.upper().replace("-", "").replace("_", "")
    for card in ACCELERATORS:
        if sold == card.sold and plain.startswith(card.name):
            return card
    return None
