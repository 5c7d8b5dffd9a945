"""What mypy and pyright know of the names that `colearn` exports, and find in a program that gives
objects."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import colearn

api = pytest.importorskip("mypy.api", reason="mypy is what is tested")

ROOT = Path(__file__).parents[2]
NAMES = [name for name in colearn.__all__ if name != "__version__"]
HEAD = """
from typing import Any
import colearn
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import ModelSettings, TrainSettings
from colearn.contract import Callback, UpdateEvent
from colearn.training.callbacks import EarlyStopping, OwnMetric
from colearn.contract.types import Tree

def columns(prompts: list[str], completions: list[str], colour: list[str], **_: Any) -> list[float]:
    return [1.0]

def short(completions: list[str], **_: Any) -> list[float | None]:
    return [None]

async def judged(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
    return [1.0]

def untyped(prompts, completions, colour, **kwargs):
    return [1.0]

def one_text(text: str) -> list[float]:
    return [1.0]

def one_number(prompts: list[str], completions: list[str], **_: Any) -> float:
    return 1.0

class Tell(Callback):
    def on_update(self, event: UpdateEvent) -> None:
        event.metrics["trees"] = float(len(event.trees))

def turns(tree: Tree[Any]) -> float:
    return float(len(tree.nodes))

rows = [{"prompt": "a", "colour": "red"}]
"""
RIGHT = """
colearn.train(data=rows, reward=[columns, short, judged, untyped], models="m", critic="c")
colearn.train("str_build", MAGRPO(), models={"a": "m", "b": ModelSettings(path="n")})
result = colearn.train("str_build", train=TrainSettings(episodes=2), agents={}, seed=1, out="run")
colearn.Trainer("str_build", "magrpo", models="m", evaluation={"every": 1})
reveal_type(result.metrics)
with colearn.Trainer("str_build", callbacks=[Tell(), EarlyStopping(patience=2)]) as trainer:
    reveal_type(trainer.step())
    trainer.evaluate()
    trainer.save()
compared = colearn.compare("str_build", "out", algorithms=["magrpo", MAGRPO()], seeds=2, models="m")
colearn.compare(colearn.load_config("quickstart"), callbacks=[OwnMetric(function=turns)])
reveal_type(compared.report)
experiment = colearn.Experiment(colearn.load_config("quickstart"), "runs/first")
trees: list[Tree[str]] = experiment.trees()
reveal_type(experiment.run().environment_steps)
reveal_type(colearn.read_run(colearn.open_run("runs/first")).evaluations[0].environment_steps)
""" + "".join(f"reveal_type(colearn.{name})\n" for name in NAMES)
WRONG = {
    'colearn.train("str_build", modles="m")': 'Unexpected keyword argument "modles"',
    'colearn.Trainer("str_build", modles="m")': 'Unexpected keyword argument "modles"',
    'colearn.train("str_build", trian={})': 'Unexpected keyword argument "trian"',
    'colearn.train("str_build", train=TrainSettings(episode=2))': 'keyword argument "episode"',
    "colearn.train(data=rows, reward=one_text)": 'Argument "reward" to "train" has incompatible',
    "colearn.train(data=rows, reward=[short, one_number])": "List item 1 has incompatible type",
    "colearn.Trainer(data=rows, reward=one_number)": 'Argument "reward" to "Trainer" has',
    "colearn.train(data=3, reward=short)": 'Argument "data" to "train" has incompatible type',
    'colearn.compare("str_build", modles="m")': 'Unexpected keyword argument "modles"',
    'colearn.compare("str_build", algorithms=3)': 'Argument "algorithms" to "compare" has',
    'colearn.train("str_build", callbacks=[one_text])': "List item 0 has incompatible type",
    'colearn.Trainer("str_build").step(3)': 'Too many arguments for "step"',
    "EarlyStopping(patiense=2)": 'Unexpected keyword argument "patiense"',
    "OwnMetric(function=one_number)": 'Argument "function" to "OwnMetric" has incompatible',
    'colearn.load_config("quickstart").train.environment_stepz': "environment_stepz",
    "colearn.train(3)": 'Argument 1 to "train" has incompatible type "int"',
}


WRONG_LINES = [(HEAD + RIGHT).count("\n") + 1 + number for number in range(len(WRONG))]


def written(folder: Path) -> Path:
    script = folder / "script.py"
    script.write_text(HEAD + RIGHT + "\n".join(WRONG) + "\n")
    return script


@pytest.mark.slow
def test_mypy_knows_every_name_and_finds_a_wrong_keyword_and_a_wrong_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nfollow_imports = silent\nplugins =\n"
        "[mypy-torch.*,peft.*,accelerate.*,matplotlib.*,scipy.*,transformers.*]\n"
        "follow_imports = skip\n"
    )
    script = written(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    told, errors, _ = api.run([str(script), "--config-file", str(tmp_path / "mypy.ini")])
    assert not errors
    by_line: dict[int, str] = {}
    for line in told.splitlines():
        if ": error: " in line:
            by_line.setdefault(int(line.split(":")[1]), line)
    assert sorted(by_line) == WRONG_LINES, told
    for number, expected in zip(WRONG_LINES, WRONG.values(), strict=True):
        assert expected in by_line[number]
    said = told.replace("builtins.", "")
    for revealed in ("dict[str, float | None]", "dict[str, float]", "pathlib.Path", "int"):
        assert f'note: Revealed type is "{revealed}"' in said
    assert said.count("Revealed type is ") == 5 + len(NAMES)
    assert 'Revealed type is "Any"' not in said


@pytest.mark.network  # the package pyright fetches the checker when it first runs
def test_pyright_finds_each_wrong_line_and_no_other(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    settings = {"extraPaths": [str(ROOT)], "include": [written(tmp_path).name]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)["generalDiagnostics"]
    errors = [one for one in told if one["severity"] == "error"]
    assert sorted({one["range"]["start"]["line"] + 1 for one in errors}) == WRONG_LINES, errors
    shown = " ".join(one["message"] for one in told if one["severity"] == "information")
    for revealed in ("dict[str, float | None]", "dict[str, float]", '"Path"', '"int"'):
        assert revealed in shown
    assert 'is "Unknown"' not in shown
