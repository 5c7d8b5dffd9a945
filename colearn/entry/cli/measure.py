"""`colearn measure`: measures a device for the times of dry runs."""

from __future__ import annotations

from typing import Annotated

import typer


def measure(
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
) -> None:
    """Measure how fast a device of this machine computes, in less than a minute. Every later dry
    run on this device then tells the time of an iteration."""
    from colearn.estimate.measure import measure as measured
    from colearn.estimate.speed import device_name, keep_speed, known_speeds
    from colearn.models.load import resolve_device

    chosen = resolve_device(device, "--device")
    known_speeds()  # a damaged file is told before the measurement
    speed = measured(chosen)
    keep_speed(chosen, speed)
    rates = ", ".join(
        f"{rate / 1e9:,.0f} GFLOP/s in {name}" for name, rate in speed.products.items()
    )
    print(f"{device_name(chosen)}: {rates}; {1e6 * speed.launch:.1f} microseconds a launch")
