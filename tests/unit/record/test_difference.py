"""Whether two configs make the same run: a longer one of the same kind, or another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest

from colearn.config import load_config
from colearn.errors import ConfigError
from colearn.runs.record import RunWriter
from colearn.runs.record.difference import first_difference


def plain(steps: int, **sections: Any) -> dict[str, Any]:
    return {"train": {"environment_steps": steps}, "models": {"*": {"path": "m"}}, **sections}


def test_a_run_at_constant_rates_may_be_longer():
    for critic in (None, {"frozen": 0.0}, {"frozen": 1.0}):
        constant = {"models": {"*": {"schedule": "constant"}}, "critic": critic}
        assert first_difference(plain(4, **constant), plain(8, **constant)) is None


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"models": {"*": {}, "a": {"schedule": "linear"}}}, "models.a.schedule"),
        ({"critic": {"schedule": "cosine"}}, "critic.schedule"),
        ({"critic": {"frozen": 0.5}}, "critic.frozen"),
        ({"algorithm": {"loss": {"anneal_fraction": 1.0}}}, "algorithm.loss.anneal_fraction"),
        ({"agents": {"*": {"sampling": {"anneal": {"start": 1.0}}}}}, "agents.*.sampling.anneal"),
    ],
)
def test_what_falls_over_the_budget_makes_a_longer_run_another_one(sections, key):
    one, other = plain(4, **sections), plain(8, **sections)
    assert first_difference(one, one) is None
    told = first_difference(one, other)
    assert told == f"train.environment_steps was 4, is 8, and {key} follows it"


def test_the_first_of_two_differences_is_the_one_that_is_no_length():
    one = plain(4, critic={"schedule": "linear"}, run={"seed": 0})
    other = plain(8, critic={"schedule": "linear"}, run={"seed": 1})
    assert first_difference(one, other) == "run.seed was 0, is 1"


def test_a_run_is_not_made_shorter_than_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fabricated.write_run(folder, "collm_cc", 0)

    def resume(steps: int) -> None:
        settings = [f"train.environment_steps={steps}"]
        config = load_config(folder / "config.yaml", settings)
        RunWriter(folder, config, resume=True).close()

    with pytest.raises(ConfigError, match=r"environment_steps: 399 is less than the 400 that"):
        resume(399)
    resume(400)
    (folder / "metrics.jsonl").write_text("")  # of a run that has made nothing yet
    resume(8)


def test_a_run_may_go_on_in_another_place():
    here = plain(4, run={"host": {"name": "local"}, "device": "cpu"})
    there = plain(4, run={"host": {"name": "ray", "address": "auto"}, "device": "cuda"})
    assert first_difference(here, there) is None
