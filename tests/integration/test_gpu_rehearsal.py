"""The measurements for an accelerator, rehearsed on the CPU with small shapes."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))
gpu: Any = importlib.import_module("gpu")

ITEMS = ("parity", "decode", "update", "classeval")


def called(monkeypatch: pytest.MonkeyPatch, out: Path, *items: str) -> list[dict[str, Any]]:
    command = ["gpu.py", "--small", "--out", str(out), "--items", *items]
    monkeypatch.setattr(sys, "argv", command)
    gpu.main()
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_every_item_gives_numbers_or_says_what_is_missing_and_only_a_failed_one_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, where a measurement starts one for each item."""

    def here(name: str, small: bool, _: float) -> list[dict[str, Any]]:
        result = tmp_path / "rows.jsonl"
        result.unlink(missing_ok=True)
        gpu.noted(name, small, result)
        return [{"item": name, **line} for line in gpu.read(result)]

    monkeypatch.setattr(gpu, "run_item", here)
    out = tmp_path / "cpu.jsonl"
    out.write_text(json.dumps({"item": "decode", "row": "decode", "error": "out of memory"}) + "\n")
    failed, *lines = called(monkeypatch, out, *ITEMS)
    assert failed["error"] == "out of memory"
    rows = [row for item in ITEMS for row in gpu.ITEMS[item].rows]
    assert [line["row"] for line in lines] == rows
    by_row = {line["row"]: line for line in lines}
    assert by_row["parity"]["gaps"]["Qwen3"] == [0.0, 0.0], "the CPU beside itself"
    assert by_row["decode, two adapters, 64 rows"]["tokens_per_second"] > 0
    assert by_row["ClassEval"]["hours"] > 0
    assert called(monkeypatch, out, *ITEMS) == [failed, *lines]


def test_an_item_in_a_process_of_its_own_ends_with_its_rows_or_with_its_reason() -> None:
    (line,) = gpu.run_item("speed", small=True, seconds=120)
    assert line["skipped"] == "a device in name only has no speed"
    (line,) = gpu.run_item("parity", small=True, seconds=0.2)
    assert line["error"] == "took more than 0 s"


@pytest.mark.parametrize("part", [1, 2])
def test_a_part_takes_less_than_six_minutes(part: int) -> None:
    assert sum(item.seconds for item in gpu.ITEMS.values() if item.part == part) < 360


def test_the_page_holds_what_was_said_of_every_row_before_it_ran() -> None:
    assert gpu.table([]) in (ROOT / "benchmarks/results/gpu.md").read_text()
