"""The measurements for an accelerator, rehearsed on the CPU with small shapes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import gpu

ITEMS = ("parity", "update", "decode", "packed trees", "memory")


def called(monkeypatch: pytest.MonkeyPatch, out: Path, *items: str) -> list[dict[str, Any]]:
    command = ["gpu.py", "--small", "--out", str(out), "--items", *items]
    monkeypatch.setattr(sys, "argv", command)
    gpu.main()
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_every_item_gives_numbers_or_says_what_is_missing_and_only_a_failed_one_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, where a measurement starts one for each item."""
    monkeypatch.setattr(
        gpu, "run_item", lambda name, small, _: {"item": name, **gpu.ITEMS[name](small)}
    )
    out = tmp_path / "cpu.jsonl"
    out.write_text(json.dumps({"item": "decode", "error": "out of memory"}) + "\n")
    failed, *lines = called(monkeypatch, out, *ITEMS)
    assert failed["error"] == "out of memory"
    assert [line["item"] for line in lines] == list(ITEMS)
    assert [line["error"] for line in lines if "error" in line] == []
    by_item = {line["item"]: line for line in lines}
    assert by_item["parity"]["gaps"]["Qwen3"] == [0.0, 0.0], "the CPU beside itself"
    assert 0 < by_item["update"]["share"] < 1
    assert by_item["decode"]["tokens_per_second"] > 0
    packed, apart = by_item["packed trees"]["rows"]
    assert (packed, apart) == (1, 4), "one prompt of four answers"
    assert called(monkeypatch, out, *ITEMS) == [failed, *lines]
