"""Every collective operation of a run is entered by all processes, in the same order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ranks_runs import run_program

from tests.rehearsal.run_cases import LORA, notes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("processes", [2, 4])
def test_all_processes_enter_the_same_collectives_in_the_same_order(
    tmp_path: Path, processes: int
) -> None:
    """Three episodes: with four processes, one has none."""
    settings = notes(
        "collm_cc", tmp_path, train={"episodes": 3}, critic={"lora": {"rank": 2}}, **LORA
    )
    settings["run"] = {"device": "cpu", "generator": "transformers"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(settings))
    entered = tmp_path / "entered"
    entered.mkdir()
    status, told = run_program(
        "collective_order.py",
        str(config),
        str(tmp_path / "run"),
        str(entered),
        processes=processes,
    )
    orders = [(entered / str(rank)).read_text().splitlines() for rank in range(processes)]
    assert all(order == orders[0] for order in orders)
    assert status == 0, told[-2000:]
    names = {json.loads(line)[0] for line in orders[0]}
    assert {"all_reduce", "all_gather_object"} <= names
