"""The dry run's memory estimate against measured peaks, one process per run.

    python benchmarks/memory.py [--gemma FOLDER] [--only "NAME;NAME"]

Each case is a real run of two updates; `peak_memory_bytes` of its run.json is the measure (on a CPU
the largest resident size of the process, on an accelerator the most memory allocated there).
FOLDER comes from benchmarks/gemma_model.py; without it only the embedded models run. Cases named
`held out` had no part in setting any constant of the estimate.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

UPDATES = 2
SMALL: dict[str, Any] = {"evaluation.every": 1000, "evaluation.repeats": 1}
GEMMA = SMALL | {"evaluation.episodes": 4, "train.episodes": 3, "train.minibatch": None}
GEMMA["algorithm.rollout"] = {"name": "chain"}
TREE = {"algorithm.rollout": {"name": "tree", "k": 2}}
FULL = {
    "models": {"team": {"learning_rate": 1e-5}},
    "agents.builder_1.model": "team",
    "agents.builder_2.model": "team",
}


@dataclass(frozen=True)
class Case:
    config: str
    algorithm: str
    settings: Mapping[str, Any]
    steps: int
    """Joint actions of one iteration."""
    held_out: bool = True


CASES = {
    "embedded, collm_cc": Case("quickstart", "collm_cc", SMALL, 32, held_out=False),
    "embedded, magrpo": Case("quickstart", "magrpo", SMALL | {"train.episodes": 4}, 80),
    "embedded, collm_dc, share actor": Case(
        "quickstart", "collm_dc", SMALL | {"critic": {"share": "actor"}}, 32
    ),
    "embedded-large, collm_cc": Case(
        "quickstart",
        "collm_cc",
        SMALL | {"models.*.path": "embedded-large", "critic.path": "embedded-large"},
        32,
    ),
    "embedded-large, 64 episodes": Case(
        "quickstart",
        "collm_cc",
        SMALL
        | {
            "models.*.path": "embedded-large",
            "critic.path": "embedded-large",
            "train.episodes": 64,
        },
        128,
    ),
    "gemma LoRA, collm_cc": Case("gemma_str_build", "collm_cc", GEMMA, 6, held_out=False),
    "gemma LoRA, collm_cc, 512 tokens": Case(
        "gemma_str_build", "collm_cc", GEMMA | {"train.token_budget": 512}, 6
    ),
    "gemma LoRA, collm_dc": Case("gemma_str_build", "collm_dc", GEMMA, 6),
    "gemma LoRA, collm_dc, share actor": Case(
        "gemma_str_build", "collm_dc", GEMMA | {"critic": {"share": "actor"}}, 6
    ),
    "gemma LoRA, magrpo": Case(
        "gemma_str_build", "magrpo", GEMMA | TREE | {"train.episodes": 2}, 12
    ),
    "gemma in full, magrpo, one model": Case(
        "gemma_str_build", "magrpo", GEMMA | FULL | TREE | {"train.episodes": 1}, 6
    ),
    "gemma in full, collm_cc, one model": Case(
        "gemma_str_build",
        "collm_cc",
        GEMMA | FULL | {"critic.lora": None, "train.episodes": 2},
        4,
    ),
}


def command(case: Case, gemma: str | None) -> list[str]:
    """The run's `colearn train`, without --out."""
    settings = dict(case.settings) | {"train.environment_steps": UPDATES * case.steps}
    if case.config == "gemma_str_build":
        assert gemma is not None
        settings["base"] = gemma
    pairs = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    return ["train", case.config, "--algorithm", case.algorithm, *pairs]


def estimated(arguments: list[str]) -> int:
    """Peak bytes that the dry run gives, in a process of its own."""
    code = (
        "import json, sys; from colearn.config import load_config; "
        "from colearn.estimate import estimate; "
        "e = estimate(load_config(sys.argv[1], json.loads(sys.argv[2]))); "
        "d = max(e.phases, key=e.peak) if len(e.phases) == 1 else "
        "next(n for n in e.phases if n != 'cpu'); "
        "print(json.dumps([e.peak(d), e.phases[d]]))"
    )
    pairs = [word.removeprefix("--set=") for word in arguments if word.startswith("--set=")]
    pairs.append(f"algorithm.name={arguments[arguments.index('--algorithm') + 1]}")
    process = subprocess.run(
        [sys.executable, "-c", code, arguments[1], json.dumps(pairs)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    peak, phases = json.loads(process.stdout)
    print({phase: round(size / 1e6) for phase, size in phases.items()}, file=sys.stderr)
    return int(peak)


def measured(arguments: list[str], folder: Path) -> int:
    """Peak bytes of the run itself."""
    subprocess.run(
        [sys.executable, "-m", "colearn", *arguments, "--out", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return int(json.loads((folder / "run.json").read_text())["peak_memory_bytes"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gemma", help="folder of Gemma 3 270M, for the cases with it")
    parser.add_argument("--only", help="beginnings of names, `;` between them")
    arguments = parser.parse_args()
    device = "accelerator" if torch.accelerator.is_available() else "CPU"
    print(f"| case ({device}) | constants | estimate, MB | measured, MB | ratio | run, s |")
    print("|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if case.config == "gemma_str_build" and arguments.gemma is None:
            continue
        if arguments.only and not name.startswith(tuple(arguments.only.split(";"))):
            continue
        words = command(case, arguments.gemma)
        folder = Path(tempfile.mkdtemp(prefix="memory-"))
        try:
            if case.config == "quickstart":
                measured(words, folder / "warm")  # makes the embedded model, which costs memory
            began = time.perf_counter()
            real = measured(words, folder / "run")
            seconds = time.perf_counter() - began
            guess = estimated(words)
        finally:
            shutil.rmtree(folder)
        use = "held out" if case.held_out else "set"
        print(
            f"| {name} | {use} | {guess / 1e6:.0f} | {real / 1e6:.0f} | {guess / real:.2f} "
            f"| {seconds:.0f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
