"""Saved ratios of the benchmarks: what falls short of them, by hand, and in a measurement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

import ratios
from vs_comlrl import make_folders

SAVED = {"packed tree": {"ratio": 2.0, "tolerance": 0.25}}
BLOCKS = "attention: blocks / a mask"


def test_a_ratio_at_its_tolerance_stands_and_one_below_falls_short():
    assert ratios.shortfalls({"packed tree": 1.5}, SAVED) == []
    assert ratios.shortfalls({"packed tree": 1.49}, SAVED) == [
        "packed tree: 1.49, below 1.50 (2.00 is saved)"
    ]


def test_a_share_that_differs_between_machines_is_not_judged():
    assert ratios.shortfalls({"share": 0.1}, {"share": {"ratio": 0.6, "tolerance": None}}) == []


def test_a_ratio_that_is_not_a_number_falls_short():
    assert len(ratios.shortfalls({"packed tree": float("nan")}, SAVED)) == 1


def test_a_ratio_that_is_not_saved_is_an_error():
    with pytest.raises(KeyError, match="another"):
        ratios.shortfalls({"another": 1.0}, SAVED)


def test_writing_keeps_the_other_ratios_and_every_tolerance(tmp_path, monkeypatch):
    monkeypatch.setattr(ratios, "SAVED", tmp_path / "ratios.json")
    saved = {"a": {"ratio": 2.0, "tolerance": 0.1}, "b": {"ratio": 3.0, "tolerance": 0.2}}
    ratios.SAVED.write_text(json.dumps({"ratios": saved}))
    ratios.write({"a": 2.5, "c": 1.0})
    assert ratios.read_saved() == {
        "a": {"ratio": 2.5, "tolerance": 0.1},
        "b": {"ratio": 3.0, "tolerance": 0.2},
        "c": {"ratio": 1.0, "tolerance": 0.25},
    }


def test_every_tolerance_is_less_than_what_the_idea_saves():
    """Otherwise a fast path could be lost unseen. Ideas that save little are watched less closely:
    their ratio says that they do not cost."""
    judged = {
        name: one for name, one in ratios.read_saved().items() if one["tolerance"] is not None
    }
    assert len(judged) >= 8
    for name, saved in judged.items():
        assert 0 < saved["tolerance"] < 1
        if saved["ratio"] > 1.5:
            assert saved["ratio"] * (1 - saved["tolerance"]) > 1, name


@pytest.mark.slow
def test_no_ratio_has_fallen_below_the_saved_one():
    command = [sys.executable, ratios.__file__, "--peers"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_a_path_that_is_slowed_falls_short(tmp_path, monkeypatch):
    """Without the idea on either side the ratio is 1."""
    make_folders(tmp_path, ratios.LAYERS)
    monkeypatch.setattr("colearn.models.base.by_blocks", lambda *_: None)
    measured = ratios.measure(str(tmp_path / "model"), 1, [BLOCKS])
    (line,) = ratios.shortfalls(measured, ratios.read_saved())
    assert line.startswith(BLOCKS)
