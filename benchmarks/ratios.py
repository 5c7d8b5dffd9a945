"""Ratios that must not fall: each fast path against the same work without it, and shares of the
machine's matrix rate.

    python benchmarks/ratios.py            # measures, and compares with results/ratios.json
    python benchmarks/ratios.py --peers    # CoMLRL and TRL too, where they are installed
    python benchmarks/ratios.py --write    # saves what it measures instead

Model and words are those of `vs_comlrl.py` with two layers, K is 3. One thread, processor seconds,
both sides in turn; a side's time is its best over the rounds, since other programs only add to it.
A higher ratio is better. A ratio falls short if it is below the saved one by more than the saved
tolerance, as a share of it. Exit code 1 then. The shares of the matrix rate have no tolerance:
they are printed and not compared, because they differ between machines (an update: 0.47 and 0.66).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import vs_trl
from _ratio_work import Side, Work
from _turns import seconds_by_turn
from phases import flop, matrix_rate
from vs_comlrl import compare, make_folders

from colearn.training.team import Team

SAVED = Path(__file__).parent / "results" / "ratios.json"
LAYERS = 2


def seconds(work: Side) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def turns(chains: Team) -> tuple[float, float]:
    """Processor seconds of generating in the eighth turn and in the second, four chains."""
    by_turn = seconds_by_turn(chains, 4, seed=0)
    return by_turn[7], by_turn[1]


def measure(path: str, rounds: int, names: Sequence[str] = ()) -> dict[str, float]:
    """The ratios of `names`, or all, by name: seconds without the idea over seconds with it."""
    work = Work(path)
    pairs = {name: pair for name, pair in work.pairs().items() if not names or name in names}
    times: dict[str, list[tuple[float, float]]] = {}
    rates = []
    for number in range(rounds + 1):  # the first round allocates
        for name, (fast, slow) in pairs.items():
            times.setdefault(name, []).append((seconds(fast), seconds(slow)))
        if not names:
            times.setdefault("rollout: turn 8 / turn 2 of eight", []).append(turns(work.chains))
            times.setdefault("share", []).append((seconds(work.decode), seconds(work.update)))
            rates.append(matrix_rate())
        if not number:
            times = {name: [] for name in times}
    shares = times.pop("share", [])
    ratios = {
        name: min(slow for _, slow in both) / min(fast for fast, _ in both)
        for name, both in times.items()
    }
    if shares:
        decoded, updated = (min(column) * max(rates) for column in zip(*shares, strict=True))
        products = flop(work.chains, work.decode())["rollout"]
        ratios["decoding 24 rows: share of the matrix rate"] = products / decoded
        products = flop(work.magrpo, work.trees)["update"]
        ratios["update: share of the matrix rate"] = products / updated
    return ratios


def peers(folder: Path, rounds: int) -> dict[str, float]:
    """Joint actions and completions per processor second over a peer's, where it is installed."""
    options = Namespace(episodes=[1], rounds=rounds, seconds=1.0, items=1, threads=1)
    options.token_budget = None
    ratios = {}
    if find_spec("comlrl") is not None:
        *_, own = compare(folder, "magrpo", 1, options)
        ratios["MAGRPO: colearn / CoMLRL"] = max(own["cpu_ratios"])
    if find_spec("trl") is not None:
        ratios["GRPO: colearn / TRL"] = max(vs_trl.compare(folder, options)["cpu_ratios"])
    return ratios


def shortfalls(ratios: Mapping[str, float], saved: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each ratio that is below the saved one by more than a saved tolerance."""
    lines = []
    for name, ratio in ratios.items():
        before, tolerance = saved[name]["ratio"], saved[name]["tolerance"]
        if tolerance is not None and not ratio >= (least := before * (1.0 - tolerance)):
            lines.append(f"{name}: {ratio:.2f}, below {least:.2f} ({before:.2f} is saved)")
    return lines


def read_saved() -> dict[str, dict[str, Any]]:
    saved: dict[str, dict[str, Any]] = json.loads(SAVED.read_text())["ratios"]
    return saved


def write(ratios: Mapping[str, float]) -> None:
    """Save ratios beside those of other names; a tolerance stays as it was."""
    content = json.loads(SAVED.read_text()) if SAVED.is_file() else {"ratios": {}}
    for name, ratio in ratios.items():
        entry = content["ratios"].setdefault(name, {"tolerance": 0.25})
        entry["ratio"] = round(ratio, 3)
    SAVED.write_text(json.dumps(content, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", action="store_true", help="also those of peers")
    parser.add_argument("--write", action="store_true", help="save instead of comparing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_folders(folder, LAYERS)
        ratios = measure(str(folder / "model"), options.rounds)
        if options.peers:
            ratios |= peers(folder, options.rounds)
    print(json.dumps({name: round(ratio, 3) for name, ratio in ratios.items()}), flush=True)
    if options.write:
        write(ratios)
        return 0
    lines = shortfalls(ratios, read_saved())
    print("\n".join(lines), file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.exit(main())
