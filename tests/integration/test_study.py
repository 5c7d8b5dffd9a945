"""The study of a comparison: policies swapped, agents trained alone put together, roles drawn."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from colearn.config import load_config
from colearn.errors import ConfigError
from colearn.runs.comparison.claim import claim
from colearn.runs.comparison.plan import make_plan
from colearn.runs.record.checksums import write_checksums
from colearn.training.loop import Experiment
from colearn.training.study import write_study
from colearn.training.study.crossing import Member, crossings

ALONE = {"tool": "tool_alone", "plan": "plan_alone"}
ROWS = {
    "at_grpo": {},
    "tool_alone": {"algorithm.name": "at_grpo", "agents.plan.program": {"name": "adopts"}},
    "plan_alone": {"algorithm.name": "at_grpo", "agents.tool.program": {"name": "says"}},
    "shared": {
        "algorithm.name": "at_grpo",
        "models": {"team": {"path": "embedded-tiny"}},
        "agents": {"*": {"model": "team", "sampling": {"max_tokens": 4}}},
    },
}


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    config = {
        "task": {"name": "plan_path", "prompt": "compact", "size": 3, "turns": 1, "train": 8},
        "models": {"*": {"path": "embedded-tiny", "learning_rate": 0.01}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "train": {"environment_steps": 9, "episodes": 1},
        "evaluation": {"episodes": 2, "every": 1},
        "compare": {"seeds": [0], "algorithms": ROWS},
    }
    config["task"]["test"] = 4
    out = tmp_path_factory.mktemp("study") / "compared"
    plan = make_plan(load_config(config))
    claim(plan, out, None)
    for run in plan.runs:
        Experiment(run.config, run.folder(out).path).run()
    return out


def test_the_teams_are_those_of_the_papers_table_4() -> None:
    together, swapped, alone = crossings(("tool", "plan"), "all", ALONE)
    assert together.seats == {"tool": Member("all", "tool"), "plan": Member("all", "plan")}
    assert swapped.seats == {"tool": Member("all", "plan"), "plan": Member("all", "tool")}
    assert alone.seats == {
        "tool": Member("tool_alone", "tool"),
        "plan": Member("plan_alone", "plan"),
    }
    assert len(crossings(("tool", "plan"), "all", {})) == 2
    with pytest.raises(ConfigError, match="--alone: name a label for each of tool, plan"):
        crossings(("tool", "plan"), "all", {"tool": "tool_alone"})


@pytest.mark.slow
def test_a_team_as_it_was_trained_plays_as_at_its_last_evaluation(compared: Path) -> None:
    page = write_study(compared, together="at_grpo", alone=ALONE, metric="progress")
    study = json.loads((compared / "study.json").read_text())
    assert set(study["teams"]) == {
        "trained together",
        "trained together, policies swapped",
        "each trained alone, put together",
    }
    lines = (compared / "runs" / "at_grpo-s0" / "metrics.jsonl").read_text().splitlines()
    last = [row for row in map(json.loads, lines) if row["kind"] == "evaluation"][-1]
    together = study["teams"]["trained together"]
    assert together["mean"] == pytest.approx(last["metrics"]["progress"])
    assert set(study["rewards"]) == {"tool", "plan"} and study["turns"]["x"]
    text = page.read_text()
    assert "policies swapped" in text and text.count("<svg") == 0 and "data:image/svg" in text


def _with_planner(folder: Path, out: Path, change: Callable[[Path], None]) -> Path:
    """A copy of a comparison in which `change` was applied to each checkpoint of `at_grpo`."""
    shutil.copytree(folder, out)
    for step in (out / "runs" / "at_grpo-s0" / "checkpoints").glob("step-*"):
        change(step)
        write_checksums(step)
    return out


def _same_as_tool(step: Path) -> None:
    shutil.rmtree(step / "actor-plan")
    shutil.copytree(step / "actor-tool", step / "actor-plan")


def _silent(step: Path) -> None:
    """All logits are 0: greedily the planner says its first token for ever."""
    file = step / "actor-plan" / "weights.safetensors"
    save_file({name: 0 * value for name, value in load_file(file).items()}, file)


def _means(folder: Path) -> list[float]:
    write_study(folder, together="at_grpo", metric="objective/tool")
    teams = json.loads((folder / "study.json").read_text())["teams"]
    return [team["mean"] for team in teams.values()]


@pytest.mark.slow
def test_a_seat_is_played_by_who_was_trained_for_another(compared: Path, tmp_path: Path) -> None:
    """Where the planner's weights are the tool user's, swapping changes nothing; where the planner
    can say nothing, swapping silences the tool user, who is paid for what it says."""
    together, swapped = _means(_with_planner(compared, tmp_path / "same", _same_as_tool))
    assert together == swapped
    together, swapped = _means(_with_planner(compared, tmp_path / "silent", _silent))
    assert together > swapped + 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "given, message",
    [
        ({"together": "at_grp"}, "no finished run of 'at_grp' here; .*at_grpo"),
        ({"together": "at_grpo", "metric": "sloved"}, "--metric: no metric 'sloved'"),
        ({"together": "shared"}, "agents.tool: shares the model 'team'"),
        ({"together": "at_grpo", "alone": {"tol": "tool_alone"}}, "--alone: no agent 'tol'"),
    ],
)
def test_a_mistake_is_one_line(compared: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        write_study(compared, **given)
