"""`benchmarks/gpu.py` on a device in name only: each item ends, and what it compares is equal."""

from __future__ import annotations

import pytest


def test_the_device_computes_what_the_cpu_computes(rehearse):
    gaps = rehearse("gpu_cases:measured", item="parity")["rows"]["parity"]["gaps"]
    assert sorted(gaps) == ["Gemma3", "Llama", "Qwen3"]
    assert max(gap for both in gaps.values() for gap in both) <= 1e-5


@pytest.mark.parametrize("item", ["decode", "update", "team, collm_cc", "classeval"])
def test_an_item_gives_every_row_that_was_predicted(rehearse, item):
    case = rehearse("gpu_cases:measured", item=item)
    assert list(case["rows"]) == case["predicted"]


def test_a_team_trains_stops_resumes_and_is_exported_on_the_device_that_nobody_named(rehearse):
    run = rehearse("gpu_cases:measured", item="whole run")["rows"]["a team's run"]
    assert run["devices"] == ["cuda:0"]
    assert run["iterations"] == 2
    assert run["exported_agent_says"]
