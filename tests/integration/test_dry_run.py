"""`colearn train --dry-run`: what needs no weights is checked, and nothing is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import DEVNULL, run
from typing import Any

import pytest
import yaml
from commands import *  # noqa: F403 - a fixture
from commands import Command
from estimated import *  # noqa: F403 - fixtures
from tiny import register, save_model

from colearn.config import load_config, shipped_configs
from colearn.errors import ConfigError
from colearn.estimate import estimate
from colearn.runs.comparison.plan import config_of
from colearn.training.loop import Experiment


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to stand in, an empty cache of embedded models, no hub."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def config(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    register(monkeypatch, notes="tiny:Notes")
    settings: dict[str, Any] = {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "models": {"*": {"path": model}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": model},
        "train": {"environment_steps": 8, "episodes": 2},
        "run": {"device": "cpu"},
        "compare": {
            "algorithms": {
                "collm_cc": {},
                "wide": {"algorithm.name": "magrpo", "algorithm.rollout.k": 3},
            }
        },
    }
    path = tmp_path / "notes.yaml"
    path.write_text(yaml.safe_dump(settings))
    return str(path)


def test_a_dry_run_shows_networks_peaks_and_tokens_and_writes_nothing(
    colearn: Command, config: str, tmp_path: Path
) -> None:
    code, out, err = colearn("train", config, "--dry-run", "--out", str(tmp_path / "run"))
    assert (code, err) == (0, "")
    for word in ("actor-ada", "critic-team", "rollout", "actor update", "most", "generations"):
        assert word in out
    # the cache notes a folder that was opened for the first time in this process
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"notes.yaml"}
    assert {path.name for path in tmp_path.glob("cache/*")} <= {"opened"}, "no model is made"


@pytest.mark.usefixtures("no_passes")
def test_a_label_of_the_comparison_is_resolved(colearn: Command, config: str) -> None:
    _, out, _ = colearn("train", config, "--dry-run", "--algorithm", "wide")
    # 2 episodes of 3 + 9 joint actions
    assert "notes, magrpo" in out and any(
        "joint actions" in line and " 24 " in line for line in out.splitlines()
    )


@pytest.mark.usefixtures("no_passes")
def test_an_iteration_beyond_the_budget_is_told_before_a_run_and_in_it(
    colearn: Command, config: str, tmp_path: Path
) -> None:
    _, out, err = colearn("train", config, "--dry-run", "--algorithm", "wide")
    assert "has up to 24 environment steps, the budget is 8, and" in " ".join((out + err).split())
    _, out, err = colearn("train", config, "--dry-run")
    assert "environment steps, the budget" not in " ".join((out + err).split())
    words = ("--algorithm", "wide", "--out", str(tmp_path / "run"))
    code, _, err = colearn("train", config, *words)
    line = (
        "note: train.environment_steps: one iteration has up to 24 environment steps, the budget "
        "is 8, and an iteration is never cut; lower train.episodes, or raise "
        "train.environment_steps"
    )
    assert code == 0 and err.splitlines().count(line) == 1


@pytest.mark.usefixtures("no_passes")
def test_a_comparison_is_a_row_for_each_entry_and_writes_nothing(
    colearn: Command, config: str, tmp_path: Path
) -> None:
    code, out, err = colearn("compare", config, "--dry-run", "--out", str(tmp_path / "all"))
    assert (code, err) == (0, "")
    rows = {
        line.split()[1]: line for line in out.splitlines() if "GB on cpu" in line or "MB on" in line
    }
    # collm_cc: 2 episodes of 2 turns; wide: 2 episodes of 3 + 9
    assert " 4 " in rows["collm_cc"] and " 24 " in rows["wide"]
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"notes.yaml"}


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("train.episode=2", "train.episode: unknown key"),
        ("task.horizn=2", "task.horizn: unknown setting"),
        ("agents={ada: {}}", "agents.ben: "),
        ("critic=null", "critic: "),
        ("critic.path=/nowhere", "critic.path: no folder /nowhere"),
        (
            "critic.path=nobody/nothing",
            "critic.path: not on this machine: nobody/nothing; an estimate needs its config.json",
        ),
        ("algorithm.name=grpo", "algorithm: "),
    ],
)
def test_a_mistake_is_one_line(colearn: Command, config: str, pair: str, said: str) -> None:
    code, out, err = colearn("train", config, "--dry-run", "--set", pair)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_run_without_a_folder_is_one_line(colearn: Command, config: str) -> None:
    code, _, err = colearn("train", config)
    assert code == 2 and err.startswith("error: --out: missing; ") and err.count("\n") == 1


ELSEWHERE = ("gemma_str_build", "gemma_tldr", "taught_team")
LABELS = {
    name: min(load_config(name).compare.algorithms, default=load_config(name).algorithm.name)
    for name in shipped_configs()
    if yaml.safe_load(shipped_configs()[name].read_text()).get("models") and name not in ELSEWHERE
}
"""A label of every shipped config that describes a run, except those with models in folders that
the user downloads or exports."""


@pytest.mark.usefixtures("no_passes")
def test_a_teacher_that_is_not_here_is_named_by_its_setting() -> None:
    config = config_of(load_config("taught_team"), "teacher")
    with pytest.raises(ConfigError, match=r"^models\.\w+\.teacher: not on this machine: teachers/"):
        estimate(config)


@pytest.mark.slow
def test_a_config_of_published_models_is_estimated() -> None:
    assert estimate(config_of(load_config("paper/coop_humaneval"), "collm_cc")).phases


@pytest.mark.usefixtures("no_passes")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "paper/tldr" else pytest.mark.slow) for name in LABELS],
)
def test_every_shipped_config_is_planned(name: str) -> None:
    """Only the passes over the models are left out, which differ by architecture."""
    assert estimate(config_of(load_config(name), LABELS[name])).phases


@pytest.mark.usefixtures("no_passes")
def test_what_a_dry_run_counts_is_what_a_run_trains_and_an_iteration_costs(
    config: str, tmp_path: Path
) -> None:
    settings = load_config(config)
    done = Experiment(settings, tmp_path / "run").run()
    expected = estimate(settings)
    counted = {
        n.key.model if n.key.kind == "actor" else str(n.key): n.trained for n in expected.networks
    }
    assert counted == done.parameters
    steps = expected.steps
    assert steps is not None
    # two iterations, every episode at its horizon
    assert (done.joint_actions, done.generations) == (
        2 * steps.joint_actions,
        2 * steps.generations,
    )
    assert done.generated_tokens <= 2 * steps.new_tokens


@pytest.mark.slow
def test_the_estimate_is_within_a_fifth_of_what_a_run_measures(tmp_path: Path) -> None:
    words = ["train", "quickstart", "--algorithm", "collm_cc"]
    # the first run makes the embedded model, which needs memory, too
    for folder, steps in (("warm", 1), ("run", 64)):
        more = [f"--set=train.environment_steps={steps}", "--out", str(tmp_path / folder)]
        run([sys.executable, "-m", "colearn", *words, *more], check=True, stdout=DEVNULL)
    measured = json.loads((tmp_path / "run" / "run.json").read_text())["peak_memory_bytes"]
    dry_run = estimate(config_of(load_config("quickstart"), "collm_cc"))
    assert dry_run.peak("cpu") == pytest.approx(measured, rel=0.2)
