"""A mistake is one line that names the field and the remedy, exit code 2, and no run folder."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from commands import *  # noqa: F403 - a fixture
from commands import Command, complaint
from tiny import Notes, Scene, register, save_model

from colearn.config import load_config
from colearn.contract.types import Outcome
from colearn.errors import ConfigError
from colearn.models.load import check_model
from colearn.runs.record import RunFolder
from colearn.training.loop import Experiment


class NoItems(Notes):
    """No held-out item."""

    def items(self, split: str) -> tuple[Any, ...]:
        return tuple(self.clues) if split == "train" else ()


class Numbers(Notes):
    """Agents are shown a number."""

    def observe(self, state: Scene, agent: str) -> Any:
        return 7


class Infinite(Notes):
    """A reward that is not finite."""

    def step(self, state: Scene, actions: Mapping[str, str], rng: Any) -> Outcome[Scene]:
        return Outcome(state=state, reward=float("inf"))


class Demanding(Notes):
    """A setting without a default."""

    def __init__(self, *, words: int) -> None:
        super().__init__(items=words)


TASKS = {
    "notes": "tiny:Notes",
    "no_items": f"{__name__}:NoItems",
    "numbers": f"{__name__}:Numbers",
    "infinite": f"{__name__}:Infinite",
    "demanding": f"{__name__}:Demanding",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def _tasks(monkeypatch: pytest.MonkeyPatch, colearn: Command) -> None:
    register(monkeypatch, **TASKS)


def settings(model: str) -> dict[str, Any]:
    """A config that works."""
    return {
        "task": {"name": "notes", "horizon": 1, "items": 2},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": model}},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "critic": {"path": model},
        "train": {"environment_steps": 6, "episodes": 2},
        "evaluation": {"episodes": 1},
        "run": {"device": "cpu"},
    }


@pytest.fixture
def config(tmp_path: Path, model: str) -> Callable[..., str]:
    """Write a config that works, with other sections in place of its own (None: left out)."""

    def write(**sections: Any) -> str:
        whole = settings(model) | sections
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump({k: v for k, v in whole.items() if v is not None}))
        return str(path)

    return write


def is_one_line(code: int, err: str, *words: str) -> None:
    assert code == 2
    assert err.count("\n") == 1 and err.endswith("\n") and err.startswith("error: "), err
    for word in words:
        assert word in err, err


SETTINGS = {
    "an unknown key": ("train.epoch=3", "train.epoch: unknown key", "did you mean 'epochs'?"),
    "a word for a number": ("train.epochs=many", "train.epochs: ", "integer", "got 'many'"),
    "a word for a list": (
        "run.trackers=wandb",
        "run.trackers: must be a list, got 'wandb'; write [wandb]",
    ),
    "a negative learning rate": (
        "models.*.learning_rate=-1e-4",
        "models.*.learning_rate: ",
        "greater than 0",
        "got -0.0001",
    ),
    "no such choice": (
        "run.learner=locale",
        "run.learner: unknown learner 'locale'",
        "did you mean 'local'?",
    ),
    "an unknown task": ("task.name=note", "task", "'note'", "did you mean 'notes'?"),
    "an unknown algorithm": (
        "algorithm.name=collm",
        "algorithm",
        "'collm'",
        "did you mean 'collm_",
    ),
    "an unknown task setting": ("task.horizn=2", "task.horizn: ", "did you mean 'horizon'?"),
    "an unknown setting of a part": (
        "algorithm.advantage.stps=2",
        "algorithm.advantage.stps: unknown setting",
        "did you mean 'steps'?",
    ),
    "an unknown part": (
        "algorithm.advantage.name=group_men",
        "algorithm.advantage.name: unknown advantage 'group_men'",
        "did you mean 'group_mean'?",
    ),
    "a wrong type of a part's setting": (
        "algorithm.loss.clip=high",
        "algorithm.loss.clip: ",
        "got 'high'",
    ),
    "a task setting that is not given": ("task.name=demanding", "task.", "unknown setting"),
    "no such protocol": (
        "wrapper=debate",
        "wrapper: unknown wrapper 'debate'",
        "known: discussion, parallel, pipeline, single",
    ),
    "no such model folder": (
        "models.*.path=/nowhere/at/all",
        "models.ada.path: ",
        "no folder /nowhere/at/all",
        "give a model's folder",
    ),
    "an agent that the task does not have": (
        "agents.benn.window=99",
        "agents.benn: ",
        "did you mean 'ben'?",
    ),
    "an agent on a model that is not there": (
        "agents.ada.model=big",
        "agents.ada.model: ",
        "no model 'big'",
    ),
    "an adapter on layers that are not there": (
        "models.*.lora={targets: nope}",
        "models.ada.lora.targets: ",
        "nope",
        "all-linear",
    ),
    "a window that no prompt fits": ("agents.*.window=3", "agents.ada.window: ", "raise it"),
    "a pair without a value": ("train.epochs", "--set train.epochs: ", "dotted.key=value"),
    "a pair whose value is not YAML": ("train.epochs=[1", "--set train.epochs=[1: ", "YAML"),
    "a central critic on an actor": (
        "critic={share: actor}",
        "critic.share: ",
        "give critic.path",
    ),
    "two critics at once": ("critic.share=actor", "critic: ", "either path or share"),
    "no device of this name": ("run.device=gpu0", "run.device: ", "'gpu0'"),
    "more hosts than devices": (
        "placement={ada: cpu, ben: 'cuda:97'}",
        "placement.ben: ",
        "no device cuda:97 on this machine, which has cpu",
    ),
    "a stage that does not exist": (
        "run.learner={name: deepspeed, config: zero4}",
        "run.learner.config: ",
        "unknown name 'zero4'",
        "zero",
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_mistaken_setting_is_one_line(
    setting: str, colearn: Command, config: Callable[..., str], tmp_path: Path
) -> None:
    pair, *words = SETTINGS[setting]
    code, _, err = colearn("train", config(), "--out", str(tmp_path / "run"), "--set", pair)
    is_one_line(code, err, *words)
    assert not (tmp_path / "run").exists()


SECTIONS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a model without a path": (
        {"models": {"*": {"learning_rate": 1e-4}}},
        ("models.*.path: ", "missing"),
    ),
    "no models": ({"models": None}, ("models: missing",)),
    "no task": ({"task": None}, ("task: missing",)),
    "a task without its setting": ({"task": {"name": "demanding"}}, ("task.words: missing",)),
    "an agent without a model": (
        {"models": {"ada": {"path": "MODEL"}}},
        ("agents.ben.model: ", "no model 'ben'"),
    ),
    "a model without an agent": (
        {"models": {"*": {"path": "MODEL"}, "cleo": {"path": "MODEL"}}},
        ("models.cleo: ", "no agent plays this model"),
    ),
    "an agent without an entry": ({"agents": {"ada": {}}}, ("agents.ben: ", "add it")),
    "no trained model": (
        {"models": {"*": {"path": "MODEL", "trained": False}}},
        ("models: ", "set trained: true"),
    ),
    "a group of one": (
        {"algorithm": {"name": "magrpo", "rollout": {"k": 1}}},
        ("algorithm.rollout.k: ", "K=1", "set it to 2 or more"),
    ),
    "a group of none": (
        {"algorithm": {"name": "mareinforce", "rollout": {"k": 0}}},
        ("algorithm.rollout.k: ", "must lie in 1 to 1024, got 0"),
    ),
    "a team for one agent's algorithm": (
        {"algorithm": {"name": "grpo"}},
        ("algorithm: ", "trains one agent", "use magrpo"),
    ),
    "a critic's algorithm without a critic": (
        {"critic": None},
        ("critic: ", "add a critic section"),
    ),
    "a critic without a source": ({"critic": {}}, ("critic: ", "either path or share")),
    "no held-out items": (
        {"task": {"name": "no_items"}},
        ("task.items: ", "split 'test' is empty", "at least one item"),
    ),
    "an observation that is not text": (
        {"task": {"name": "numbers"}},
        ("task.observe: ", "'ada' was given a int", "must be str, Observation or None"),
    ),
    "a reward that is not finite": (
        {"task": {"name": "infinite"}},
        ("task.step: ", "reward is inf", "must be a finite number"),
    ),
    "a reward in another process that is not finite": (
        {"task": {"name": "infinite"}, "run": {"step_workers": 1, "device": "cpu"}},
        ("task.step: ", "reward is inf"),
    ),
}


@pytest.mark.parametrize("case", SECTIONS)
def test_a_mistaken_section_is_one_line(
    case: str, colearn: Command, config: Callable[..., str], tmp_path: Path, model: str
) -> None:
    sections, words = SECTIONS[case]
    file = Path(config(**sections))
    file.write_text(file.read_text().replace("MODEL", model))
    code, _, err = colearn("train", str(file), "--out", str(tmp_path / "run"))
    is_one_line(code, err, *words)
    assert not (tmp_path / "run").exists()


FILES = {
    "a name that is not shipped": ("quickstat", None, "'quickstat'", "did you mean 'quickstart'?"),
    "a file that is not there": ("there.yaml", None, "config: no file", "there.yaml"),
    "a file that is not YAML": ("bad.yaml", "task: [", "config: ", "bad.yaml is not YAML"),
    "a file with a name twice": (
        "twice.yaml",
        "compare:\n algorithms:\n  magrpo: {}\n  magrpo: {algorithm.rollout.k: 2}\n",
        "twice.yaml",
        "the key 'magrpo' appears twice",
        "line 4",
    ),
    "a file of a list": ("list.yaml", "- 1\n", "config: ", "must hold a mapping"),
    "a file that is not text": ("bytes.yaml", b"\xff\xfe\x00\x80", "config: ", "bytes.yaml"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_mistaken_config_file_is_one_line(case: str, colearn: Command, tmp_path: Path) -> None:
    name, content, *words = FILES[case]
    path = tmp_path / name if name.endswith(".yaml") else Path(name)
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, _, err = colearn("train", str(path), "--out", str(tmp_path / "run"))
    is_one_line(code, err, *words)
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        register(patch, **TASKS)
        Experiment(load_config(settings(model)), folder).run()
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, to damage."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_folder_that_holds_another_run_is_left_alone(
    run: Path, colearn: Command, config: Callable[..., str]
) -> None:
    before = _contents(run)
    code, _, err = colearn("train", config(), "--out", str(run))
    is_one_line(code, err, f"--out {run}: ", "holds a run", "--resume")
    assert _contents(run) == before


def test_resuming_with_another_config_leaves_the_run_alone(
    run: Path, colearn: Command, config: Callable[..., str]
) -> None:
    before = _contents(run)
    code, _, err = colearn("train", config(), "--out", str(run), "--resume", "--seed", "5")
    is_one_line(code, err, f"--out {run}: ", "run.seed", "name another folder")
    assert _contents(run) == before


def test_an_out_that_is_a_file_is_one_line(
    colearn: Command, config: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "run").write_text("mine")
    code, _, err = colearn("train", config(), "--out", str(tmp_path / "run"))
    is_one_line(code, err, "--out ", "is a file", "name a folder")
    assert (tmp_path / "run").read_text() == "mine"


def test_an_out_whose_name_is_too_long_is_one_line(
    colearn: Command, config: Callable[..., str], tmp_path: Path
) -> None:
    code, _, err = colearn("train", config(), "--out", str(tmp_path / ("x" * 300)))
    is_one_line(code, err, "--out ", "name too long", "name a folder")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("train", "weights.safetensors"),
        ("train", "optimizer.safetensors"),
        ("train", "learner.json"),
        ("train", "progress.json"),
        ("evaluate", "weights.safetensors"),
    ],
)
def test_a_checkpoint_cut_short_is_one_line(
    command: str, name: str, run: Path, colearn: Command, config: Callable[..., str]
) -> None:
    *older, newest = RunFolder(run).checkpoints.all()
    for checkpoint in older:  # the one before would be used, and said so
        shutil.rmtree(checkpoint.path)
    path = min(newest.path.rglob(name))
    path.write_bytes(path.read_bytes()[:20])
    arguments = ["evaluate", str(run)]
    if command == "train":
        arguments = ["train", config(), "--out", str(run), "--resume"]
    code, _, err = colearn(*arguments)
    is_one_line(code, err, str(path), "damaged", "delete")


def test_evaluating_what_is_no_run_is_one_line(colearn: Command, tmp_path: Path) -> None:
    code, _, err = colearn("evaluate", str(tmp_path))
    is_one_line(code, err, "no config.yaml", "give a run's folder")


def test_evaluating_a_run_without_a_checkpoint_is_one_line(run: Path, colearn: Command) -> None:
    shutil.rmtree(run / "checkpoints")
    code, _, err = colearn("evaluate", str(run))
    is_one_line(code, err, str(run), "no checkpoint yet")


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "RUN"),
        ("export", "RUN", "--to", "agents"),
        ("play", "RUN", "--agent", "ada=http://127.0.0.1:9"),
        ("train", "--out", "RUN", "--resume"),
        ("report", "RUN"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("content", [b"[", b"\xff", b"7", b"task: 3"])
def test_a_damaged_config_of_a_run_is_one_line(
    words: tuple[str, ...], content: bytes, run: Path, colearn: Command
) -> None:
    (run / "config.yaml").write_bytes(content)
    arguments = [str(run) if word == "RUN" else word for word in words]
    assert complaint(colearn, *arguments, named=str(run / "config.yaml")) is None


def test_reporting_what_is_no_comparison_is_one_line(colearn: Command, tmp_path: Path) -> None:
    code, _, err = colearn("report", str(tmp_path))
    is_one_line(code, err, str(tmp_path), "colearn compare CONFIG --out DIR")


EXTRAS = {
    "vllm": "run.generator=vllm",
    "wandb": "run.trackers=[wandb]",
    "tensorboard": "run.trackers=[tensorboard]",
    "deepspeed": "run.learner=deepspeed",
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_names_the_pip_command(
    extra: str,
    colearn: Command,
    config: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _hide(monkeypatch, extra)
    code, _, err = colearn(
        "train", config(), "--out", str(tmp_path / "run"), "--set", EXTRAS[extra]
    )
    is_one_line(code, err, f"{extra} is not installed", f"pip install 'colearn-llm[{extra}]'")
    assert not (tmp_path / "run").exists()


def _hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Let imports of a package fail as if it were not there."""
    for name in list(sys.modules):
        if name.split(".")[0] == package:
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    imported = importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named '{package}'", name=package)
        return imported(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)


def test_a_failure_after_an_evaluation_keeps_what_was_measured(
    colearn: Command,
    config: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first evaluation has 1 step; the second step of all is the first of training."""
    steps = Notes.step
    calls = []

    def step(task: Notes, *rest: Any) -> Outcome[Scene]:
        calls.append(1)
        outcome = steps(task, *rest)
        reward = float(np.nan) if len(calls) > 1 else outcome.reward
        return Outcome(state=outcome.state, reward=reward)

    monkeypatch.setattr(Notes, "step", step)
    code, _, err = colearn("train", config(), "--out", str(tmp_path / "run"))
    is_one_line(code, err, "task.step: ", "reward is nan")
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count("\n") == 1


def test_a_section_below_a_value_is_one_line(
    colearn: Command, config: Callable[..., str], tmp_path: Path
) -> None:
    file = config(run={"seed": 3, "device": "cpu"})
    code, _, err = colearn("train", file, "--out", str(tmp_path / "run"), "--set", "run.seed.x=1")
    is_one_line(code, err, "run.seed.x: seed holds a value", "set seed itself")


def test_comparing_a_mistaken_config_is_one_line_that_names_the_algorithm(
    colearn: Command, config: Callable[..., str], tmp_path: Path
) -> None:
    compare = {"algorithms": {"collm_cc": {"train.epoch": 2}}}
    code, _, err = colearn("compare", config(compare=compare), "--out", str(tmp_path / "all"))
    is_one_line(code, err, "compare.algorithms.collm_cc: train.epoch: unknown key", "'epochs'")
    assert not (tmp_path / "all").exists()


def test_checking_an_unknown_task_is_one_line(colearn: Command) -> None:
    code, _, err = colearn("check", "str_buld")
    is_one_line(code, err, "task", "did you mean 'str_build'?")


def test_an_error_outside_of_the_settings_keeps_its_traceback(
    colearn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect is no user's mistake, and is not dressed up as one."""

    def broken(kind: str) -> dict[str, str]:
        raise ZeroDivisionError

    monkeypatch.setattr("colearn.registry.names", broken)
    with pytest.raises(ZeroDivisionError):
        colearn("tasks")


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_model_folders_own_code_is_not_run_and_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers asks on the terminal where it is not told; whoever says yes runs it."""
    ran = tmp_path / "ran"
    save_model(tmp_path)
    described = json.loads((tmp_path / "config.json").read_text())
    described |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}
    (tmp_path / "config.json").write_text(json.dumps(described))
    (tmp_path / "own.py").write_text(
        f"open({str(ran)!r}, 'w')\nfrom transformers import PreTrainedConfig\n\n\n"
        "class Own(PreTrainedConfig):\n    model_type = 'own'\n"
    )
    monkeypatch.setattr("builtins.input", lambda prompt="": "y")
    with pytest.raises(ConfigError, match=r"models\.m\.path: cannot load"):
        check_model(str(tmp_path), field="models.m.path")
    assert not ran.exists()
