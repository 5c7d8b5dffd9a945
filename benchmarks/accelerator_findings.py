"""Twelve findings of the first rehearsal on a device in name only, measured before and after.

    git worktree add --detach /tmp/before 74ed9a7
    python benchmarks/accelerator_findings.py /tmp/before [--out accelerator_findings.json]

Runs the same measurements on a checkout of the earlier version and on this one, each in a process
of its own, and prints the table of `results/accelerator_findings.md`. A measurement that is in the
output file already is not repeated. Needs g++; nothing runs on hardware.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from colearn.files.cache import cache_folder
from tests.rehearsal.guard_library import compiled

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
ON_DEVICE = ("moved", "decoded", "head", "masks", "vllm")
SETTINGS = ("ray", "two processes", "tied head", "defaults")
DRY_RUN = ("paper/arxiv", "8xH100-80GB")
QWEN_HEAD = 151_936 * 2048 * 2
"""Bytes of the head of Qwen3-1.7B in bfloat16."""
ITEM = re.compile(r'^    "[^"]+": ', re.M)


def environment(checkout: Path, *more: Path) -> dict[str, str]:
    paths = os.pathsep.join(map(str, (checkout, *more)))
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return os.environ | quiet | {"PYTHONPATH": paths, "COLUMNS": "300", "PYTHONWARNINGS": "ignore"}


def answered(command: list[str], checkout: Path, *more: Path) -> str:
    """The output of a process that imports colearn from a checkout."""
    done = subprocess.run(
        [sys.executable, *command],
        env=environment(checkout, *more),
        cwd=checkout,
        text=True,
        capture_output=True,
    )
    assert not done.returncode, f"{command}: {done.stderr[-2000:]}"
    return done.stdout


def measured(case: str, checkout: Path) -> Any:
    if case == "dry run":
        config, devices = DRY_RUN
        command = ["-m", "colearn", "train", config, "--dry-run", "--devices", devices]
        return proposed(answered(command, checkout))
    if case in SETTINGS:
        output = answered([str(HERE / "_findings_settings.py"), case], checkout)
    else:
        library = str(compiled(cache_folder() / "rehearsal"))
        output = answered([str(HERE / "_findings_device.py"), library, case], checkout, ROOT)
    return json.loads(output.splitlines()[-1])


def proposed(printed: str) -> dict[str, Any]:
    """The proposal of a dry run: processes, devices with a peak, and the last line about time."""
    lines = printed.partition("\nproposed")[2].splitlines()
    processes = re.search(r"in (\d+) processes", lines[0])
    peaks = [line for line in lines if re.match(r"  cuda:\d+: at most", line)]
    times = [line.strip() for line in lines if line.startswith("estimate, not measured")]
    vllm = any("vllm" in line for line in lines)
    count = (int(processes[1]) if processes else 1) * len(peaks)
    return {"devices": count, "vLLM": vllm, "time": times[-1] if times else None}


def rows(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What was measured, and its value on both sides, by finding."""
    both = (before, after)
    table: list[tuple[str, str, str]] = []

    def add(what: str, *values: Any) -> None:
        table.append((what, *map(str, values)))  # type: ignore[arg-type]

    for kind in ("qwen3", "llama", "gemma3"):
        add(
            f"1. {kind} moved to the device after its engine was built",
            *(side["moved"][kind] for side in both),
        )
    add(
        "2. vLLM beside a trainer on a half-full device of 80 GiB (40 free): GiB asked for",
        *(f"{side['vllm']['asked GiB']:.1f}: {side['vllm']['vLLM']}" for side in both),
    )
    add("2. its arguments", *(shown(side["vllm"]["given"]) for side in both))
    names = {"0": "full weights", "1": "one adapter", "2": "adapters of two agents"}
    for number, name in names.items():
        for place, kind in ((3, "kernels"), (3, "copies"), (4, "waits")):
            add(
                f"{place}. a decoded token, {name}: {kind}",
                *(f"{side['decoded'][number][kind]:,.0f}" for side in both),
            )
    add(
        "5. weights cast for a token, full weights (elements)",
        *(f"{side['decoded']['0']['weight elements cast']:,.0f}" for side in both),
    )
    add(
        "5. types in the KV cache, full weights in bfloat16",
        *(", ".join(side["decoded"]["0"]["cache"]) for side in both),
    )
    add(
        "6. reads of the head to score 512 tokens of 151,936 words",
        *(side["head"]["reads"] for side in both),
    )
    add(
        "6. bytes of these reads in the shape of Qwen3-1.7B, bfloat16",
        *(f"{side['head']['reads'] * QWEN_HEAD / 1e9:.1f} GB" for side in both),
    )
    for tokens in ("2,121", "16,384"):
        masks = [side["masks"][tokens] for side in both]
        add(
            f"7. mask of a tree of {tokens} tokens: largest tensor with equal sides, to build it",
            *(f"{m['largest'] / 1e6:,.1f} MB, {1000 * m['seconds']:,.0f} ms" for m in masks),
        )
    add("8. a vLLM server for one of two processes", *(side["two processes"] for side in both))
    add(
        "9. bytes to a server, tied head, of bytes of weights",
        *(f"{s['tied head']['bytes']:,} of {s['tied head']['weights']:,}" for s in both),
    )
    for kind in ("staleness", "deepspeed", "exact"):
        add(f"10. Ray with {kind}", *(side["ray"][kind] for side in both))
    plans = [side["dry run"] for side in both]
    add(
        f"11. dry run of `{DRY_RUN[0]}` on {DRY_RUN[1]}: devices used by the proposal",
        *(plan["devices"] for plan in plans),
    )
    add("11. its generator", *("vLLM" if plan["vLLM"] else "not named" for plan in plans))
    add("11. its time", *(plan["time"] or "none" for plan in plans))
    for kind in ("token_budget, CPU", "token_budget, CUDA", "tf32", "ZeRO stages"):
        add(f"12. {kind}", *(side["defaults"][kind] for side in both))
    return table


def shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in arguments.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="a checkout of 74ed9a7")
    parser.add_argument("--out", type=Path, default=Path("accelerator_findings.json"))
    given = parser.parse_args()
    known = json.loads(given.out.read_text()) if given.out.exists() else {}
    for side, checkout in (("before", given.before.resolve()), ("after", ROOT)):
        for case in (*ON_DEVICE, *SETTINGS, "dry run"):
            if case not in known.setdefault(side, {}):
                known[side][case] = measured(case, checkout)
                given.out.write_text(json.dumps(known, indent=1))
                print(f"{side}, {case}: {known[side][case]}", file=sys.stderr, flush=True)
    items = [len(ITEM.findall(gpu_items(one))) for one in (given.before, ROOT)]
    print("| measured | 74ed9a7 | now |\n|---|---|---|")
    for row in [("1. items of `benchmarks/gpu.py`", *map(str, items)), *rows(**known)]:
        print("| " + " | ".join(row) + " |")


def gpu_items(checkout: Path) -> str:
    """The table of items in a checkout's `benchmarks/gpu.py`."""
    text = (checkout / "benchmarks" / "gpu.py").read_text()
    return text.partition("\nITEMS")[2].partition("\n}")[0]


if __name__ == "__main__":
    main()
