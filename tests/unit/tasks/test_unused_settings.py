"""A setting that has no effect beside another one is refused in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from colearn.errors import ConfigError
from colearn.tasks.dataset.task import Dataset
from colearn.tasks.debate import Debate
from colearn.tasks.environment import Environment
from colearn.tasks.math_duo import MathDuo

MATCHES = "tests.helpers.reward_functions:matches"
OTHER_DATA = "has no effect unless task.data is 'generated'; leave it out"


@pytest.mark.parametrize("team", [MathDuo, Debate])
@pytest.mark.parametrize("setting", ["train", "test", "seed"])
def test_what_generates_problems_is_refused_beside_a_file(
    team: Any, setting: str, tmp_path: Path
) -> None:
    rows = [{"problem": f"{n} + 1", "answer": str(n + 1)} for n in range(20)]
    path = tmp_path / "sums.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert len(team(data=str(path)).items("train")) == 18
    with pytest.raises(ConfigError, match=f"^task.{setting}: {re.escape(OTHER_DATA)}$"):
        team(data=str(path), **{setting: 4})


@pytest.mark.parametrize("setting", [{"prompt": "prompt"}, {"test_share": 0.5}])
def test_settings_of_rows_are_refused_without_rows(setting: dict[str, Any]) -> None:
    (name,) = setting
    line = f"^task.{name}: has no effect without task.path; leave it out$"
    with pytest.raises(ConfigError, match=line):
        Environment("tests.helpers.trl_environments:Buttons", **setting)


def test_a_share_to_hold_out_is_refused_beside_held_out_rows(tmp_path: Path) -> None:
    line = "^task.test_share: has no effect beside test_path or test_split; leave it out$"
    train, test = str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")
    with pytest.raises(ConfigError, match=line):
        Dataset(train, MATCHES, test_path=test, test_share=0.2)
