"""Runs from Python objects: the numbers of the same run from YAML, resumed, and refused."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Dataset

import colearn
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import load_config
from colearn.entry.python.named import Names
from colearn.errors import CheckpointError, ColearnError, ConfigError
from colearn.methods.credit.mixed import Mixed
from colearn.registry import own_function
from colearn.rollout.shapes import KaryTree, Parallel
from colearn.training.loop import Experiment
from tests.helpers.reward_functions import matches
from tests.helpers.tiny import Notes, byte_tokenizer, save_model, saved_model, tiny_model

ROWS = [{"prompt": f"paint {n}", "colour": c} for n in range(6) for c in ("red", "blue")]
TEAM = {"name": "dataset", "agents": ["draft", "final"], "words": ["red", "blue"]}
SETTINGS: dict[str, Any] = {
    "agents": {"*": {"sampling": {"max_tokens": 4}}},
    "train": {"environment_steps": 12, "episodes": 2},
    "evaluation": {"every": 1},
    "run": {"seed": 3, "device": "cpu"},
}
TINY = {"path": saved_model(), "learning_rate": 3e-3}


def even(prompts, completions, **kwargs):
    """Half of what a small model says, whatever it says."""
    return [0.1 * (sum(map(ord, said)) % 2 == 0) for said in completions]


def vowels(completions, **kwargs):
    return [0.1 * sum(letter in "aeiou" for letter in said) for said in completions]


def measured(folder: Path) -> list[Any]:
    """All lines of a run without what a clock measured."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("wall_seconds")
        line["metrics"] = {
            name: value
            for name, value in line["metrics"].items()
            if not any(word in name for word in ("seconds", "time", "idle", "busy"))
        }
    return lines


def as_yaml(tmp_path: Path, **sections: Any) -> list[Any]:
    """The lines of the run of a YAML file."""
    path = tmp_path / "same.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **sections}))
    Experiment(load_config(path), tmp_path / "yaml").run()
    return measured(tmp_path / "yaml")


def test_objects_of_every_kind_give_the_numbers_of_the_same_run_from_yaml(tmp_path: Path) -> None:
    """A task, models and an algorithm with parts replaced."""
    folders = {name: save_model(tmp_path / name, seed=n) for n, name in enumerate(("ada", "ben"))}
    expected = as_yaml(
        tmp_path,
        task={"name": "tests.helpers.tiny:Notes", "items": 3},
        algorithm={
            "name": "magrpo",
            "rollout": {"name": "parallel", "k": 3},
            "credit": {"name": "mixed", "alpha": 0.25},
        },
        models={name: {"path": path} for name, path in folders.items()},
    )
    result = colearn.train(
        Notes(items=3),
        MAGRPO(rollout=Parallel(k=3), credit=Mixed(alpha=0.25)),
        models={
            "ada": (tiny_model(seed=0), byte_tokenizer()),
            "ben": (tiny_model(seed=1), byte_tokenizer()),
        },
        out=tmp_path / "objects",
        **SETTINGS,
    )
    assert measured(result.folder) == expected
    recorded = yaml.safe_load((result.folder / "config.yaml").read_text())
    assert recorded["task"] == {"name": "object:Notes"}
    assert recorded["algorithm"] == {
        "name": "magrpo",
        "rollout": {"name": "parallel", "k": 3},
        "credit": {"name": "mixed", "alpha": 0.25},
    }


def test_models_rows_and_functions_resumed_give_the_numbers_of_the_run_from_yaml(
    tmp_path: Path,
) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    saved = {"path": save_model(tmp_path / "saved", seed=5), "learning_rate": 3e-3}
    functions = [f"{__name__}:even", f"{__name__}:vowels"]
    expected = as_yaml(
        tmp_path,
        task={
            **TEAM,
            "path": str(tmp_path / "rows.jsonl"),
            "reward": ["tests.helpers.reward_functions:matches", *functions],
        },
        models={"*": saved},
        critic=saved,
    )

    def continued(steps: int, *, resume: bool = False) -> colearn.Result:
        given = {"path": (tiny_model(seed=5), byte_tokenizer()), "learning_rate": 3e-3}
        return colearn.train(
            TEAM,
            models=given,
            critic=given,
            data=Dataset.from_list(ROWS),
            reward=[matches, even, lambda completions, **kwargs: vowels(completions)],
            out=tmp_path / "objects",
            resume=resume,
            **{**SETTINGS, "train": {"environment_steps": steps, "episodes": 2}},
        )

    continued(6)
    result = continued(12, resume=True)
    renamed = json.loads(json.dumps(measured(result.folder)).replace("_lambda", "_vowels"))
    seen = {(line["kind"], line["iteration"]): line for line in renamed}
    assert list(seen.values()) == expected and len(expected) > 6
    assert any(line["metrics"].get("draft/grad_norm") for line in expected), "there is to learn"


def test_a_class_and_a_function_of_a_module_are_recorded_by_name(tmp_path: Path) -> None:
    trainer = colearn.Trainer(
        {"name": Notes, "items": 2},
        MAGRPO(rollout=KaryTree(k=2)),
        models=save_model(tmp_path / "model"),
        out=tmp_path / "run",
        **SETTINGS,
    )
    trainer.record.close()
    recorded = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert recorded["task"] == {"name": "tests.helpers.tiny:Notes", "items": 2}
    assert recorded["algorithm"]["name"] == "magrpo"


def test_functions_in_a_section_of_the_task_are_named_as_arguments_are() -> None:
    def play(item, endpoints):
        return 1.0

    names = Names()
    section = names.task({"name": "gateway", "play": play, "grade": matches, "workers": 0})
    assert section == {
        "name": "gateway",
        "play": "object:play",
        "grade": "tests.helpers.reward_functions:matches",
        "workers": 0,
    }
    assert names.objects == {"object:play": play}
    assert own_function("object:play", "task.play") is play


def test_a_resume_without_its_objects_says_that_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = colearn.Trainer(
        Notes(items=2), models=save_model(tmp_path / "m"), algorithm="magrpo",
        out=tmp_path / "run", **SETTINGS,
    )  # fmt: skip
    trainer.record.close()
    monkeypatch.setattr("colearn.registry.given._given", {})
    config = colearn.open_run(tmp_path / "run").config()
    with pytest.raises(ConfigError) as told:
        Experiment(config, tmp_path / "run", resume=True)
    assert str(told.value) == (
        "task.name: 'object:Notes' is an object that the run's program gave; resume from that "
        "program with colearn.train(..., out=FOLDER, resume=True)"
    )


def test_other_rows_are_another_run(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "models": TINY, "reward": matches, "out": tmp_path / "run", **SETTINGS
    }  # fmt: skip
    colearn.Trainer(TEAM, "magrpo", data=ROWS, **given).record.close()
    with pytest.raises(CheckpointError, match=r"another config \(first difference: task\.path"):
        colearn.train(TEAM, "magrpo", data=ROWS[1:], resume=True, **given)


def too_few(prompts, completions):
    return [1.0]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, "task: missing; give a task, or data and reward for one of rows"),
        ({"data": ROWS, "reward": too_few}, "reward: 'too_few' is called with prompts, comple"),
        ({"data": ROWS, "reward": 3}, "reward: int is no function; give one that takes prompts"),
        ({"data": 3, "reward": matches}, "data: int is no path and no list of rows; give a list"),
        ({"data": ["red"], "reward": matches}, "task.path: row 1 of data is no object"),
        (
            {"data": {"rows": ROWS}, "reward": matches},
            "data: give rows, or a mapping with train and test; this mapping has rows",
        ),
        ({"task": 3}, "task: int is no DecPOMDP; give a name, or an object or a class of"),
        ({"task": Experiment}, "task: Experiment is no DecPOMDP; give a name"),
        ({"task": Notes(), "reward": matches}, "reward: task object:Notes has its own; leave it"),
        ({"task": Notes(), "data": ROWS}, "data: task object:Notes has its own; leave it out"),
        ({"task": Notes(), "algorithm": 3}, "algorithm: int is no Algorithm; give a name, or an"),
        ({"task": Notes(), "models": 3}, "models: int is no model; give a path, or a transformers"),
        ({"task": Notes(), "models": tiny_model()}, "models: Qwen3ForCausalLM is no model; give a"),
        ({"task": Notes(), "models": (1, 2)}, "models: (int, int) is no transformers model with"),
        ({"task": Notes(), "modles": "m"}, "modles: no such argument; did you mean 'models'?"),
        ({"task": Notes(), "train": {"episode": 2}}, "train.episode: unknown key; did you mean"),
        ({"task": Notes(), "resume": True}, "out: missing; name the folder of the run to resume"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_line_that_names_it(
    arguments: dict[str, Any], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ColearnError) as told:
        colearn.train(**{"models": TINY["path"], "algorithm": "magrpo", **arguments})
    assert str(told.value).startswith(line) and "\n" not in str(told.value)
    assert not list(tmp_path.iterdir())


def breaks(prompts, completions, **columns):
    raise ZeroDivisionError("no colour")


@pytest.mark.parametrize(
    "call",
    [
        lambda: colearn.train(TEAM, "magrpo", data=ROWS, reward=breaks, models=TINY, **SETTINGS),
        lambda: colearn.train(TEAM, "magrop", data=ROWS, reward=matches, models=TINY),
        lambda: colearn.Trainer(TEAM, "magrop", data=ROWS, reward=matches, models=TINY),
        lambda: colearn.compare(TEAM, data=ROWS, reward=matches, models=TINY, out=3),
    ],
)
def test_a_script_shows_its_own_line_and_the_error_s(
    call: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ColearnError) as told:
        call()
    shown = "".join(traceback.format_exception(told.value))
    files = {frame.filename for frame in traceback.extract_tb(told.value.__traceback__)}
    assert files == {__file__}
    assert shown.count("Traceback") == 1
    assert shown.splitlines()[-1].endswith(str(told.value))


def test_an_error_of_colearn_itself_keeps_its_whole_traceback(monkeypatch: Any) -> None:
    def broken(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("colearn.entry.python.api.load_config", broken)
    with pytest.raises(AssertionError) as told:
        colearn.train(Notes(), models=TINY)
    assert traceback.extract_tb(told.value.__traceback__)[-1].name == "broken"


def test_a_run_of_objects_is_evaluated_on_another_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the result; and by another program, which has nothing but the run's folder and a task."""
    held = [{"prompt": "say one", "answer": "x"}]
    data = {"train": ROWS, "test": held}
    result = colearn.train(
        TEAM, "magrpo", data=data, reward=even, models=TINY, out=tmp_path / "run", **SETTINGS
    )
    last = result.evaluate()
    assert last["return"] == pytest.approx(result.metrics["return"])
    settings: dict[str, Any] = {"split": "train", "greedy": True}
    wanted = result.evaluate(**settings)
    with pytest.raises(ConfigError, match=r"^evaluation\.splt: "):
        result.evaluate(splt="train")
    monkeypatch.setattr("colearn.registry.given._given", {})
    there = colearn.evaluate(TEAM, result.folder, data=data, reward=even, seed=3, **settings)
    for name in ("return", "tokens_per_turn"):
        assert there[name] == pytest.approx(wanted[name])
    assert wanted["return"] != last["return"]
