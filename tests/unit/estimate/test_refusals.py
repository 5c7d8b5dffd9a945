"""A dry run refuses what a real run refuses."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import Notes, register, save_model

from colearn.config import load_config, resolve
from colearn.errors import ConfigError, TaskError
from colearn.estimate import estimate
from colearn.training.evaluation.checked import check_evaluation
from colearn.training.load_team import load_team


@pytest.fixture
def settings(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    register(monkeypatch, notes="tiny:Notes")
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": save_model(tmp_path / "model", "llama")}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "train": {"episodes": 2},
        "run": {"device": "cpu"},
    }


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            ["evaluation.pass_at=[5]"],
            "evaluation.pass_at: k = 5 needs as many episodes of each item, there are 1; raise",
        ),
        (
            ["evaluation.pass_at=[5]", "evaluation.repeats=5"],
            "evaluation.pass_at: the task has no metric 'pass'; leave the setting out",
        ),
        (["evaluation.exact=true"], "evaluation.exact: needs a finite task such as dpomdp"),
        (
            ["evaluation.headline={metric: retrun}"],
            "evaluation.headline: no metric 'retrun'; did you mean 'return'?",
        ),
        (["models.*.lora={targets: '((('}"], "lora.targets: "),
    ],
)
def test_a_mistake_is_told_before_anything_is_played(
    settings: dict[str, Any], pairs: list[str], message: str
) -> None:
    config = load_config(settings, pairs)
    for check in (estimate, load_team):
        with pytest.raises(ConfigError) as caught:
            check(config)
        assert message in str(caught.value)


def test_a_window_below_an_observation_is_refused(settings: dict[str, Any]) -> None:
    config = load_config(settings, ["agents.*.window=1"])
    with pytest.raises(ConfigError, match=r"^agents\.ada\.window: an observation of \d+ tokens ex"):
        estimate(config)


def test_a_deep_tree_is_refused_before_it_is_grown(settings: dict[str, Any]) -> None:
    """1,024 ^ 9 nodes; a dry run would not end."""
    config = load_config(settings, ["task.horizon=9", "algorithm.rollout.k=1024"])
    with pytest.raises(
        ConfigError, match=r"^algorithm\.rollout\.k: one tree of .* by turn 2; lower"
    ):
        estimate(config)


@pytest.mark.parametrize(
    ("task", "algorithm", "chosen", "meant"),
    [
        ({"name": "open_spiel", "games": "kuhn_poker"}, "marshal", "nash_con", "nash_conv"),
        ({"name": "dpomdp", "horizon": 2}, "magrpo", "exact_retrun", "exact_return"),
    ],
)
def test_a_misspelt_exact_headline_is_told_before_anything_is_played(
    settings: dict[str, Any], task: dict[str, Any], algorithm: str, chosen: str, meant: str
) -> None:
    def checked(metric: str) -> None:
        pairs = ["evaluation.exact=true", f"evaluation.headline={{metric: {metric}}}"]
        check_evaluation(resolve(load_config(settings, pairs)))

    plain = {"max_tokens": 4, "temperature": 1.0}
    settings |= {"task": task, "algorithm": {"name": algorithm}}
    settings["agents"] = {"*": {"sampling": plain}}
    told = rf"^evaluation\.headline: no metric '{chosen}'; did you mean '{meant}'\?$"
    with pytest.raises(ConfigError, match=told):
        checked(chosen)
    for metric in (meant, f"{meant}_cold", f"{meant}_greedy", "exact_rejected", "return"):
        checked(metric)


@pytest.mark.parametrize("metric", ["return", "return/ada", "turns", "letters"])
def test_a_headline_that_the_task_measures_is_accepted(
    settings: dict[str, Any], metric: str
) -> None:
    config = load_config(settings, [f"evaluation.headline={{metric: {metric}}}"])
    run = resolve(config)
    check_evaluation(run)
    assert run.headline.metric == metric


class Mute(Notes):
    """Nobody acts."""

    closed = 0

    def observe(self, state: Any, agent: str) -> None:
        return None

    def close(self) -> None:
        Mute.closed += 1


def test_a_task_in_which_nobody_acts_is_refused_and_closed(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, notes=f"{__name__}:Mute")
    monkeypatch.setattr(Mute, "closed", 0)
    with pytest.raises(TaskError, match=r"^task\.observe: no agent acts in the first 3 items"):
        estimate(load_config(settings))
    assert Mute.closed == 1


class Last(Notes):
    """The last item alone has all turns."""

    def horizon_of(self, item: Any) -> int:
        return self.horizon if list(item) == list(self.clues[-1]) else 1


def test_a_prompt_that_no_model_reads_is_told_with_its_own_item(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, notes=f"{__name__}:Last")
    clues = [*[["near", "by"]] * 6, ["far", "x" * 10_000]]
    settings["task"] = {"name": "notes", "horizon": 2, "clues": clues}
    with pytest.raises(TaskError, match=r"'ben' was given \d+ tokens, .*, item '.*far"):
        estimate(load_config(settings))


def test_a_shipped_config_whose_model_is_a_folder_asks_for_the_folder() -> None:
    with pytest.raises(
        ConfigError, match=r"\.path: no folder \./models/gemma-3-270m; give a model"
    ):
        estimate(load_config("gemma_str_build"))
