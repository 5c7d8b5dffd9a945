"""Measurements for one accelerator, in two commands of less than six minutes, then the rest.

    python benchmarks/gpu.py --part 1 --out gpu.jsonl     # then --part 2, on the same machine
    python benchmarks/gpu.py --out gpu.jsonl --minutes 9  # the rest; again until nothing is left
    python benchmarks/gpu.py --table --out gpu.jsonl      # the table of results/gpu.md
    python benchmarks/gpu.py --out cpu.jsonl --small      # a rehearsal on the CPU

Every item runs in a process of its own, at most for its seconds. It adds one JSON line for each row
as soon as the row is known, with the prediction and the published anchor that stand here. Finished
items are not repeated; an item that fails or lacks a package adds its reason.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT), str(ROOT / "benchmarks")]

import _gpu_items as items  # noqa: E402
from _gpu_items import Rows, from_runs, vllm  # noqa: E402


@dataclass(frozen=True)
class Item:
    """A process of at most `seconds` on hardware, and what was said of each of its rows before they
    ran: the prediction, what is wanted and a published figure, with bars between them."""

    part: int
    seconds: int
    run: Callable[[bool], Rows]
    rows: Mapping[str, str]


SAID = ("predicted", "wanted", "published")
ROLLOUT = "12,500 tokens/s: vLLM, 1.5B, one adapter, 128 in flight, H200"
LEAST = "21.7%: 4B, LoRA, H100; 3.9 to 23.5%: 1.5B, an adapter"
DRY = "the dry run's times within 1.5 x, its peak within 5%"
CLASSEVAL = {
    "ClassEval": "3.0 h, 40 of 139 GiB||33 h (IAC) and 48 h (MAGRPO), 3B, H200",
    "ClassEval, dry run": DRY,
}
WHOLE = {"a team's run": "cuda:0 alone, return 0.4 to 0.9, 60 s|rises"}
COMPILED = {"vllm, compiled, 64 rows": "10,000 tokens/s, starts in 150 s"}
SPEED = {"colearn measure": "247 TFLOP/s in bfloat16, 3 us a launch"}
DECODE = {
    "decode, full weights, 64 rows": "6.2 ms, 10,300 tokens/s",
    "decode, two adapters, 64 rows": f"7.1 ms, 9,000 tokens/s|12,500 tokens/s|{ROLLOUT}",
    "decode, two adapters, 256 rows": "15.6 ms, 16,400 tokens/s|25,000 tokens/s",
}
VLLM_FULL = {
    "vllm, full weights, 64 rows": "9,000 tokens/s",
    "vllm, full weights, 128 rows": "13,000 tokens/s",
    "vllm, full weights, 256 rows": "17,000 tokens/s",
    "vllm, full weights, hand-over": "0.40 s for 1.7B, 0.14 for 0.6B|0.2 s|0.18 s for 0.6B",
}
VLLM_ADAPTERS = {
    "vllm, two adapters, 64 rows": "6,500 tokens/s",
    "vllm, two adapters, 128 rows": f"10,000 tokens/s||{ROLLOUT}",
    "vllm, two adapters, 256 rows": "14,000 tokens/s",
    "vllm, two adapters, hand-over": "2.4 s, by files|0.2 s",
}
UPDATE = {
    "update, 16k tokens": f"mfu 0.33, products made 0.22|mfu 0.24|{LEAST}",
    "update, 65k tokens": "mfu 0.36, products made 0.24|mfu 0.37|37.4%: 4B, LoRA, H100",
}
GRPO = {
    "grpo": "2.4 s a step, 31 GiB",
    "grpo by trl": "8.0 s a step, 114 GiB: 3.3 x ours|2 x ours",
}
SERVER_ADAPTERS = {
    "vllm server, two adapters, 64 rows": "6,000 tokens/s",
    "vllm server, two adapters, hand-over": "2.4 s, by files|0.2 s",
}
SERVER_FULL = {
    "vllm server, full weights, 64 rows": "8,500 tokens/s",
    "vllm server, full weights, hand-over": "4 s for 1.7B, by files|0.2 s",
}


def team(name: str, *packages: str, **run: str) -> Callable[[bool], Rows]:
    return from_runs("iteration", *packages, row=f"team, {name}", **run)


ITEMS: dict[str, Item] = {
    "parity": Item(1, 35, items.parity, {"parity": "at most 1e-6|1e-5"}),
    "speed": Item(1, 35, items.speed, SPEED),
    "decode": Item(1, 70, items.decode, DECODE),
    "vllm, full weights": Item(1, 100, vllm("vllm, full weights", 0), VLLM_FULL),
    "vllm, two adapters": Item(1, 115, vllm("vllm, two adapters", 2), VLLM_ADAPTERS),
    "update": Item(2, 60, items.update, UPDATE),
    "whole run": Item(2, 90, from_runs("whole"), WHOLE),
    "grpo": Item(2, 95, from_runs("grpo", "trl", large=items.MIDDLE), GRPO),
    "classeval": Item(2, 110, from_runs("classeval", large=items.THREE), CLASSEVAL),
    "gpu tests": Item(3, 400, items.gpu_tests, {"gpu tests": "all pass"}),
    "team, collm_cc": Item(3, 90, team("collm_cc"), {"team, collm_cc": DRY}),
    "vllm, compiled": Item(3, 240, vllm("vllm, compiled", 0, compiles=True), COMPILED),
    "vllm server, two adapters": Item(
        3, 180, vllm("vllm server, two adapters", 2, server=True), SERVER_ADAPTERS
    ),
    "vllm server, full weights": Item(
        3, 180, vllm("vllm server, full weights", 0, server=True), SERVER_FULL
    ),
    "team, vllm": Item(3, 150, team("vllm", "vllm", generator="vllm"), {"team, vllm": "ends"}),
    "zero3": Item(3, 120, items.zero3, {"zero3": "1.3 s beside 0.97"}),
}
"""By worth: what comes first is known even if time runs out. The items of parts 1 and 2 take less
than six minutes each."""


def read(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def finished(out: Path) -> set[str]:
    """Items of which every row is known, or that were skipped."""
    lines = [line for line in read(out) if "error" not in line]
    rows = {line["row"] for line in lines}
    skipped = {line["item"] for line in lines if "skipped" in line}
    return skipped | {name for name, item in ITEMS.items() if rows >= item.rows.keys()}


def run_item(name: str, small: bool, seconds: float) -> list[dict[str, Any]]:
    """The rows of one item in a process of its own, at most `seconds`, and why there are no more of
    them."""
    with tempfile.TemporaryDirectory() as folder:
        result, told = Path(folder) / "rows.jsonl", Path(folder) / "told"
        command = [sys.executable, __file__, "--item", name, "--result", str(result)]
        paths = os.pathsep.join([str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")])
        started = time.perf_counter()
        with told.open("w") as stderr:
            process = subprocess.Popen(
                [*command, *(["--small"] if small else [])],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), paths])},
                start_new_session=True,  # a server that the item has started ends with it
            )
            why = ""
            try:
                if process.wait(timeout=seconds):
                    why = told.read_text().strip()[-2000:] or "ended"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                why = f"took more than {seconds:.0f} s"
        lines = read(result)
        if why:
            lines.append({"row": name, "error": why})
        taken = round(time.perf_counter() - started, 1)
        return [{"item": name, **line, "seconds_in_all": taken} for line in lines]


def noted(name: str, small: bool, result: Path) -> None:
    """Run an item here; each row is written at once, below what was said of it."""
    item = ITEMS[name]
    try:
        for row, figures in item.run(small):
            line = {
                "row": row,
                **dict(zip(SAID, item.rows[row].split("|"), strict=False)),
                **figures,
            }
            with result.open("a") as file:
                file.write(json.dumps(line) + "\n")
    except items.Skipped as why:
        result.write_text(json.dumps({"row": name, "skipped": str(why)}) + "\n")


def table(lines: list[dict[str, Any]]) -> str:
    """Every row of the first two parts with its prediction, and what was measured."""
    hidden = ("item", "row", *SAID, "seconds_in_all")
    measured = {
        line["row"]: ", ".join(f"{k} {v}" for k, v in line.items() if k not in hidden)
        for line in lines
    }
    text = ["| row | predicted | wanted | published | measured |", "|---|---|---|---|---|"]
    for item in ITEMS.values():
        for row, asked in item.rows.items() if item.part < 3 else ():
            cells = ([*asked.split("|"), "", ""])[:3]
            text.append(f"| {' | '.join([row, *cells, measured.get(row, 'not run')])} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--part", type=int, choices=(1, 2, 3))
    parser.add_argument("--minutes", type=float, help="of this call; 6 with --part, else 9")
    parser.add_argument("--small", action="store_true", help="small shapes on the CPU")
    parser.add_argument("--table", action="store_true", help="print the rows of parts 1 and 2")
    parser.add_argument("--items", nargs="+", choices=ITEMS, default=list(ITEMS))
    parser.add_argument("--item", choices=ITEMS, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.item is not None:
        return noted(options.item, options.small, options.result)
    if options.table:
        return print(table(read(options.out)))
    end = time.monotonic() + 60 * (options.minutes or (6 if options.part in (1, 2) else 9))
    done = finished(options.out)
    for name in options.items:
        left = end - time.monotonic()
        if name in done or left < 5 or options.part not in (None, ITEMS[name].part):
            continue
        limit = left if options.small else min(left, ITEMS[name].seconds)
        for line in run_item(name, options.small, limit):
            print(json.dumps(line), flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
