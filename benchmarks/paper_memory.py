"""Estimated memory and generated tokens of each config at paper size, as a dry run counts them.

    python benchmarks/paper_memory.py [CONFIG ...] [--out benchmarks/results/paper_memory.md]

One row per config of `configs/paper/`, for the paper's own method with all networks on one CUDA
device of unlimited memory. No weight is loaded and nothing is measured. A row is printed as soon as
it is counted; with CONFIGs, other rows of the file stay.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from colearn.comparison.plan import config_of
from colearn.config import load_config, shipped_configs
from colearn.estimate import estimate
from colearn.estimate.machine import read_machine

OWN = ("at_grpo", "collm_cc", "mhgpo", "mappo", "marshal")
"""Each paper's own method; the first that a config compares is counted."""
HEADER = (
    "config",
    "method",
    "models",
    "GB on one device",
    "highest in",
    "iterations",
    "new tokens an iteration",
    "new tokens in all",
)
RESULTS = Path(__file__).parent / "results" / "paper_memory.md"
TEXT = """\
# Memory and tokens at paper size

    python benchmarks/paper_memory.py

Estimates of the dry run for each config of `configs/paper/`, with the paper's own method. None of
them was run. Peak memory is that of one process with all networks on one device, without sharding.
*New tokens* are an upper bound: every answer has its maximum length and no episode ends early.
*Iterations* follow from the budget. Published sizes replace models that are not on this machine,
one token per 3 characters their tokenizers, and the lengths of the packaged data those of the hub.

Hours are not estimated, because no rate of these models has been measured. For generation alone
they are *new tokens in all*, divided by the tokens per second of your engine and by 3,600.

"""


def counted(name: str) -> tuple[str, ...]:
    """The row of a config. Errors: ConfigError, as in its dry run."""
    config = load_config(name)
    label = next(one for one in OWN if one in config.compare.algorithms)
    one = estimate(config_of(config, label), machine=read_machine("99999GB"))
    assert one.steps is not None and one.phases is not None, one.missing
    train = one.run.config.train
    iterations = -(-train.environment_steps // one.steps.joint_actions)
    if train.iterations is not None:
        iterations = min(iterations, train.iterations)
    phases = one.phases["cuda:0"]
    paths = [model.path.split("/")[-1] for model in one.run.config.models.values() if model.trained]
    return (
        f"`{name}`",
        f"`{label}`",
        ", ".join(f"{paths.count(path)} x {path}" for path in dict.fromkeys(paths)),
        f"{one.peak('cuda:0') / 1e9:,.0f}",
        max(phases, key=lambda phase: phases[phase]),
        f"{iterations:,}",
        f"{one.steps.new_tokens:,}",
        f"{iterations * one.steps.new_tokens:,}",
    )


def written(path: Path) -> dict[str, str]:
    """The rows of an earlier file by config."""
    if not path.exists():
        return {}
    return {
        found[1]: found[0] for found in re.finditer(r"^\| `([\w/]+)` .*$", path.read_text(), re.M)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configs", nargs="*")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    names = sorted(name for name in shipped_configs() if name.startswith("paper/"))
    rows = written(given.out) if given.configs else {}
    for name in given.configs or names:
        rows[name] = "| " + " | ".join(counted(name)) + " |"
        print(rows[name], flush=True)
        head = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
        table = "\n".join([*head, *(rows[one] for one in sorted(rows))])
        given.out.write_text(TEXT + table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
