"""Proposed layout and time of each config at paper size on described machines, as a dry run has it.

    python benchmarks/paper_placement.py [CONFIG ...] [--devices 8xH100-80GB 1xH100-80GB]

One row per config of `configs/paper/` and machine, for the config as it is, which is its paper's
own method. No weight is loaded and nothing is measured. A row is written as soon as it is known;
the other rows of the file stay.
"""

from __future__ import annotations

import argparse
import itertools
import re
import time
from pathlib import Path

from colearn.config import load_config, shipped_configs
from colearn.estimate import Estimate, estimate
from colearn.estimate.machine import read_machine
from colearn.estimate.proposal import Proposal
from colearn.estimate.propose import propose
from colearn.estimate.table import idle_line

HEADER = (
    "config",
    "devices",
    "fits",
    "proposed settings",
    "processes",
    "GB by device",
    "limited by",
    "seconds of an iteration",
    "rollout, scoring, update, transfer",
    "hours",
)
DEVICES = ["8xH100-80GB", "1xH100-80GB"]
RESULTS = Path(__file__).parent / "results" / "paper_placement.md"
TEXT = """\
# Layouts and hours at paper size

    python benchmarks/paper_placement.py

What a dry run proposes for each config of `configs/paper/`. **Estimates, not measured**: none of
the configs was run; times follow from data sheets (`colearn/estimate/accelerators.py`) and from
shares of their rates that one H200 reached ([gpu.md](gpu.md)) or that are assumed
(`colearn/estimate/duration.py`). Answers have maximum length, and no episode ends early. Published
sizes replace models that are not on this machine, one token per 3 characters their tokenizers, and
the lengths of the packaged data those of the hub. *GB by device* is the peak of each device, or of
each of several equal processes. *Limited by* is the phase with the highest peak. *Hours* are those
of one seed with its evaluations.

"""


def counted(name: str, devices: str) -> str:
    """The row of a config. Errors: ConfigError, as in its dry run."""
    began = time.process_time()
    machine = read_machine(devices)
    estimated = estimate(load_config(name), machine=machine)
    assert estimated.phases is not None, estimated.missing
    proposal = propose(estimated) or Proposal({}, estimated)
    print(f"{name}: {time.process_time() - began:.0f} processor seconds", flush=True)
    one = proposal.estimate
    peaks = _peaks(one)
    highest = max(peaks, key=lambda device: peaks[device][0])
    seconds, hours = one.seconds, one.hours
    assert seconds is not None and hours is not None
    phases = (seconds.rollout, seconds.scoring, seconds.update, seconds.transfer)
    told = [f"`{key}`: {_shown(value)}" for key, value in proposal.changes.items()]
    idle = idle_line(proposal, machine)
    cells = (
        f"`{name}`",
        f"`{devices}`",
        "yes" if proposal.fits else "no",
        "<br>".join([*told, *([idle] if idle else [])]),
        str(one.processes),
        ", ".join(f"{size / 1e9:.1f}" for size, _ in peaks.values()),
        peaks[highest][1],
        f"{seconds.iteration:,.3g}" if seconds.iteration < 1000 else f"{seconds.iteration:,.0f}",
        ", ".join(f"{phase:.2g}" if phase < 100 else f"{phase:,.0f}" for phase in phases),
        f"{hours:,.1f}",
    )
    return "| " + " | ".join(cells) + " |"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    return str(value).lower()


def _peaks(estimated: Estimate) -> dict[str, tuple[int, str]]:
    """Highest peak and its phase, by CUDA device."""
    found = {}
    for device, phases in sorted((estimated.phases or {}).items()):
        if phases and device != "cpu":
            phase = max(phases, key=lambda one: phases[one])
            found[device] = phases[phase], phase
    return found


def written(path: Path) -> dict[tuple[str, str], str]:
    """The rows of an earlier file by config and devices."""
    if not path.exists():
        return {}
    rows = re.finditer(r"^\| `([\w/]+)` \| `(\w+-\w+)` \|.*$", path.read_text(), re.M)
    return {(found[1], found[2]): found[0] for found in rows}


def table(rows: dict[tuple[str, str], str]) -> str:
    head = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    made = "\n".join([*head, *(rows[one] for one in sorted(rows))]) + "\n"
    every = itertools.product(sorted(n for n in shipped_configs() if "paper/" in n), DEVICES)
    left = [f"`{name}` on `{devices}`" for name, devices in every if (name, devices) not in rows]
    return made + (f"\nNot counted yet: {', '.join(left)}.\n" if left else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configs", nargs="*")
    parser.add_argument("--devices", nargs="+", default=DEVICES)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    names = sorted(name for name in shipped_configs() if name.startswith("paper/"))
    for name in given.configs or names:
        for devices in given.devices:
            row = counted(name, devices)
            print(row, flush=True)
            rows = written(given.out) | {(name, devices): row}
            given.out.write_text(TEXT + table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
