"""Objects of a program that are not what `train` and `compare` expect: one line, or the values of
the same run without them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig
from PIL import Image

import colearn
from colearn.contract import Callback
from colearn.deploy.export import export_run
from colearn.entry.python.named import Names
from colearn.errors import CheckpointError, ColearnError, ConfigError
from colearn.programs.gateway.task import Gateway
from colearn.registry import own_function
from colearn.training.callbacks import EarlyStopping
from tests.helpers.reward_functions import matches
from tests.helpers.tiny import byte_tokenizer, tiny_model
from tests.integration.test_objects import ROWS, SETTINGS, TEAM, TINY

GIVEN: dict[str, Any] = {"data": ROWS, "reward": matches, "models": TINY}


def train(out: Path, **changes: Any) -> colearn.Result:
    return colearn.train(TEAM, "magrpo", out=out, **{**SETTINGS, **GIVEN, **changes})


def pays(number: float) -> Any:
    return lambda completions, **columns: [number] * len(completions)


def test_runs_in_several_threads_are_those_of_their_objects_and_seeds(tmp_path: Path) -> None:
    """All functions have one name, and transformers replaces functions of torch while it reads."""
    models = {**TINY, "lora": {"rank": 2}}
    alone = train(tmp_path / "alone", models=models, reward=pays(1.0)).metrics
    told: dict[float, Any] = {}

    def run(number: float) -> None:
        try:
            result = train(tmp_path / f"run{number}", models=models, reward=pays(number))
            told[number] = result.metrics
        except ColearnError as error:
            told[number] = str(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: metrics["return"] for number, metrics in told.items()} == {1: 1, 2: 2}
    assert told[1.0]["tokens_per_turn"] == alone["tokens_per_turn"]


class Waits(Callback):
    async def on_update(self, event):
        event.metrics["x"] = 1.0


def invalid() -> Any:
    model = tiny_model()
    model.generation_config.do_sample = False
    model.generation_config.temperature = 0.6
    return model


def adapted() -> Any:
    model = tiny_model()
    model.add_adapter(LoraConfig(target_modules=["q_proj"], r=2))
    return model


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"callbacks": EarlyStopping(patience=1)}, "callbacks: EarlyStopping is no list; write [."),
        ({"callbacks": [Waits()]}, "callbacks: on_update of Waits is async, and would never run"),
        ({"data": {"train": ROWS, "test": list(ROWS)}}, "task.test_path: equals task.path; name"),
        ({"run": None, "callbacks": [Callback()]}, "run: must be a section with keys of its own, "),
        ({"run": {"seed": 2}, "seed": 1}, "seed: run.seed is given, too; leave one out"),
        ({"run": "cpu", "seed": 1}, "run: must be a section with keys of its own, got 'cpu'"),
        ({"run": {"callbacks": None}, "callbacks": [Callback()]}, "run.callbacks: must be a list,"),
        ({"data": [{**row, 5: 1} for row in ROWS]}, "data: row 1 has a column 5; name columns by"),
        ({"data": [{**row, "x": circular()} for row in ROWS]}, "data: a value of the rows holds i"),
        ({"data": [{**row, "self": 1} for row in ROWS]}, "task.path: row 1 of data has a column '"),
        ({"models": (tiny_model().to("meta"), byte_tokenizer())}, "models: the model's weights ar"),
        ({"models": (invalid(), byte_tokenizer())}, "models: the model cannot be saved: Generatio"),
        ({"models": (adapted(), byte_tokenizer())}, "models: the model holds an adapter, which is"),
    ],
)  # fmt: skip
def test_a_wrong_object_is_one_line(arguments: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        train(tmp_path / "run", **arguments)
    assert str(told.value).startswith(line) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"seeds": 1.5}, "seeds: 1.5 is no number of seeds and no list of seeds"),
        ({"seeds": True}, "seeds: True is no number of seeds and no list of seeds"),
        ({"seeds": "3"}, "seeds: '3' is no number of seeds and no list of seeds"),
        ({"seeds": np.int64(0)}, "seeds 0: is how many seeds, 1 to 10,000"),
        ({"algorithms": 3}, "algorithms: int is no list; give a list of algorithms"),
    ],
)  # fmt: skip
def test_a_wrong_comparison_is_one_line(
    arguments: dict[str, Any], line: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as told:
        colearn.compare(TEAM, tmp_path / "out", **{**GIVEN, "algorithms": ["magrpo"], **arguments})
    assert str(told.value).startswith(line)


def rows_with(value: Any) -> list[dict[str, Any]]:
    return [{**row, "x": value} for row in ROWS]


def long_array(number: float) -> Any:
    values = np.zeros(5000)
    values[2500] = number
    return values


@pytest.mark.parametrize(
    "kind", [np.asarray, torch.as_tensor, lambda a: torch.as_tensor(a).bfloat16()]
)
def test_rows_with_another_number_have_another_name(kind: Any) -> None:
    one, other = (Names().rows(rows_with(kind(long_array(number)))) for number in (0.0, 1.0))
    assert one != other and one.startswith("object:rows_")


@pytest.mark.parametrize(
    "made", [lambda: Image.new("RGB", (4, 4), (9, 0, 0)), object, lambda: {1: 2, "a": {3, 4}}]
)
def test_rows_that_were_made_again_have_the_same_name(made: Any) -> None:
    assert Names().rows(rows_with(made())) == Names().rows(rows_with(made()))


def test_rows_have_the_same_name_in_every_process() -> None:
    """Python orders the words of a set by another seed in each process."""
    program = (
        "from colearn.entry.python.named import Names\n"
        "print(Names().rows([{'x': {'ash', 'elm', 'oak', 'yew'}}]))"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(names) == 1


def test_a_run_is_exported_without_the_objects_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task, of which its small model was made, is not needed: the model is in the cache."""
    result = train(tmp_path / "run", reward=pays(1.0))
    there = export_run(result.folder, tmp_path / "there")
    monkeypatch.setattr("colearn.registry.given._given", {})
    elsewhere = export_run(result.folder, tmp_path / "elsewhere")
    for agent in ("draft", "final"):
        one, other = (folder[agent] / "model.safetensors" for folder in (there, elsewhere))
        assert one.read_bytes() == other.read_bytes()


def test_a_task_keeps_its_functions_where_a_later_one_has_their_name() -> None:
    """Both functions are called `lambda`; the second run is made while the first one lives."""
    tasks = []
    for number in (1.0, 2.0):
        section = Names().task(
            {
                "name": "gateway",
                "items": lambda split, number=number: [number],
                "grade": lambda item, result, number=number: number,
                "command": ["true"],
            }
        )
        settings = {key: value for key, value in section.items() if key != "name"}
        tasks.append(Gateway(agents=("ada",), **settings))
    assert [list(task.items("train")) for task in tasks] == [[1.0], [2.0]]
    grades = [own_function(task.grade, "task.grade")(None, None) for task in tasks]
    assert grades == [1.0, 2.0]


def test_a_partial_reward_has_the_name_of_its_function() -> None:
    assert Names().reward(partial(matches, weight=2)) == "object:matches"


def test_a_folder_without_a_run_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none: no run here \(no config\.yaml\); give"):
        train(tmp_path / "none", resume=True)


class Room:
    """An environment of PettingZoo, as far as its name goes."""

    possible_agents = ("a", "b")


def test_a_class_in_a_tasks_section_has_its_importable_name() -> None:
    assert Names().task({"name": "pettingzoo", "env": Room}) == {
        "name": "pettingzoo",
        "env": f"{__name__}:Room",
    }


def test_numbers_of_numpy_in_a_section_are_numbers() -> None:
    numbers = [np.int64(3), np.float32(0.5), True]
    [three, half, yes] = Names().task({"name": "x", "setting": numbers})["setting"]
    assert (type(three), type(half), yes) == (int, float, True)
    assert (three, half) == (3, 0.5)


@pytest.mark.parametrize(
    ("task", "line"),
    [
        (Room(), 'task: Room is no DecPOMDP; give {"name": "pettingzoo", "env": Room}'),
        (
            {"name": "pettingzoo", "settings": {"room": Room()}},
            "task.settings.room: a config cannot contain a Room; give a number",
        ),
        (
            {"name": "dataset", "share": np.arange(2)},
            "task.share: a config cannot contain a ndarray; give a number",
        ),
    ],
)
def test_what_a_task_section_cannot_hold_is_one_line(task: Any, line: str) -> None:
    with pytest.raises(ConfigError) as error:
        Names().task(task)
    assert str(error.value).startswith(line)
