"""Proposed placement of each config at paper size on a described machine, as a dry run proposes it.

    python benchmarks/paper_placement.py [CONFIG ...] [--devices 8xH100-80GB]

One row per config of `configs/paper/`, for the config as it is, which is its paper's own method. No
weight is loaded and nothing is measured. A row is written as soon as it is known; with CONFIGs, the
other rows stay.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from colearn.config import load_config, shipped_configs
from colearn.estimate import Estimate, estimate
from colearn.estimate.machine import Machine, read_machine
from colearn.estimate.propose import Proposal, propose

HEADER = ("config", "fits", "proposed settings", "processes", "GB by device", "limited by")
RESULTS = Path(__file__).parent / "results" / "paper_placement.md"
TEXT = """\
# Placements at paper size

    python benchmarks/paper_placement.py

What a dry run proposes for each config of `configs/paper/` on {devices}, of which tensors can use
{memory:.1f} GB each. None of them was run, and no GPU has confirmed a figure. Answers have
maximum length, and no episode ends early. Published sizes replace models that are not on this
machine, one token per 3 characters their tokenizers, and the lengths of the packaged data those of
the hub. *GB by device* is the peak of each device, or of each of several equal processes. *Limited
by* is the phase with the highest peak.

"""


def counted(name: str, machine: Machine) -> str:
    """The row of a config. Errors: ConfigError, as in its dry run."""
    began = time.process_time()
    estimated = estimate(load_config(name), machine=machine)
    assert estimated.phases is not None, estimated.missing
    proposal = propose(estimated) or Proposal({}, estimated)
    print(f"{name}: {time.process_time() - began:.0f} processor seconds", flush=True)
    peaks = _peaks(proposal.estimate)
    highest = max(peaks, key=lambda device: peaks[device][0])
    cells = (
        f"`{name}`",
        "yes" if proposal.fits else "no",
        "<br>".join(f"`{key}`: {_shown(value)}" for key, value in proposal.changes.items()),
        str(proposal.estimate.processes),
        ", ".join(f"{size / 1e9:.1f}" for size, _ in peaks.values()),
        peaks[highest][1],
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


def written(path: Path) -> dict[str, str]:
    """The rows of an earlier file by config."""
    if not path.exists():
        return {}
    return {
        found[1]: found[0] for found in re.finditer(r"^\| `([\w/]+)` .*$", path.read_text(), re.M)
    }


def table(rows: dict[str, str]) -> str:
    head = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    return "\n".join([*head, *(rows[one] for one in sorted(rows))]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configs", nargs="*")
    parser.add_argument("--devices", default="8xH100-80GB")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    machine = read_machine(given.devices)
    names = sorted(name for name in shipped_configs() if name.startswith("paper/"))
    rows = written(given.out) if given.configs else {}
    text = TEXT.format(devices=given.devices, memory=machine.memory / 1e9)
    for name in given.configs or names:
        rows[name] = counted(name, machine)
        print(rows[name], flush=True)
        given.out.write_text(text + table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
