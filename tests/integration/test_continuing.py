"""A run that stops, for whatever reason, says what was kept and how to go on; and goes on."""

from __future__ import annotations

import io
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import Notes, Scene, register, save_model

from colearn.config import shipped_configs
from colearn.contract.types import Outcome
from colearn.entry.cli import main
from colearn.runs.record import RunFolder


class Told(Notes):
    """Gets Ctrl-C in the fifth joint action of the process."""

    steps = 0

    def step(self, state: Scene, actions: Mapping[str, str], rng: Any) -> Outcome[Scene]:
        Told.steps += 1
        if Told.steps == 5:
            signal.raise_signal(signal.SIGINT)
        return super().step(state, actions, rng)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _tasks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes", told=f"{__name__}:Told")
        yield


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    settings = {
        "task": {"name": "notes", "horizon": 1, "items": 2},
        "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
        "models": {"*": {"path": model}},
        "agents": {"*": {"sampling": {"max_tokens": 2}, "window": 99}},
        "train": {"environment_steps": 4, "episodes": 1},
        "evaluation": {"every": 1, "episodes": 1},
        "run": {"device": "cpu"},
    }
    path.write_text(yaml.safe_dump(settings))
    return path


def colearn(*arguments: object) -> tuple[int, str, str]:
    """`colearn ...` in this process: exit code, stdout, stderr."""
    code, out, err = 0, io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["colearn", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


@dataclass(frozen=True)
class Done:
    folder: Path
    code: int
    out: str


@pytest.fixture(scope="module")
def done(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A finished run of two iterations, and what it printed."""
    folder = tmp_path_factory.mktemp("done") / "run"
    code, out, _ = colearn("train", config, "--out", folder)
    return Done(folder, code, out)


@pytest.fixture
def folder(done: Done, tmp_path: Path) -> Path:
    """A copy of that run's folder."""
    return shutil.copytree(done.folder, tmp_path / "run")


def test_in_a_pipe_it_prints_a_line_at_each_start_evaluation_and_end(done: Done) -> None:
    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[0] == "magrpo seed 0: started"
    assert lines[1].startswith("magrpo seed 0: 0/4 environment steps, evaluation return ")
    finished, result, bottleneck = lines[-3:]
    assert finished == "magrpo seed 0: finished"
    assert result.startswith("evaluation return ") and bottleneck.startswith("bottleneck: ")


def test_after_ctrl_c_it_names_the_command_that_goes_on_and_that_command_does(
    config: Path, tmp_path: Path
) -> None:
    Told.steps = 0
    folder = tmp_path / "run"
    code, _, err = colearn("train", config, "--out", folder, "--set", "task.name=told")
    command = f"colearn train --out {folder} --resume"
    assert code == 130
    kept = "the state of iteration 1 is kept"
    assert err == f"interrupted; {kept}; continue with: {command}\n"
    code, out, _ = colearn(*command.split()[1:])
    assert code == 0
    assert out.startswith("magrpo seed 0: resumed at iteration 1\n")
    assert RunFolder(folder).status == "finished"


LONGER = ("--resume", "--set", "train.environment_steps=8")


def test_resuming_reads_the_run_s_own_config_and_may_extend_it(folder: Path) -> None:
    code, _, _ = colearn("train", "--out", folder, *LONGER)
    assert code == 0
    record = RunFolder(folder).record()
    assert (record.status, record.environment_steps) == ("finished", 8)
    assert RunFolder(folder).settings()["agents"]["*"]["window"] == 99


def test_a_run_ends_after_its_iterations_whatever_they_cost(config: Path, tmp_path: Path) -> None:
    """Of three iterations of two joint actions each, in a budget of a thousand; the rate has fallen
    to 2/3, 1/3 and 0 of its own by then."""
    folder, shorter = tmp_path / "run", tmp_path / "shorter"
    settings = ("train.environment_steps=1000", "models.*.schedule=linear")
    more = [part for setting in settings for part in ("--set", setting)]
    code, _, _ = colearn("train", config, "--out", folder, *more, "--set", "train.iterations=3")
    record = RunFolder(folder).record()
    assert (code, record.status) == (0, "finished")
    assert (record.iterations, record.environment_steps) == (3, 6)
    colearn("train", config, "--out", shorter, "--set", "train.environment_steps=6", *more[2:])
    assert weights(shorter) == weights(folder)


def weights(folder: Path) -> dict[str, bytes]:
    """Of the last checkpoint, by file."""
    last = RunFolder(folder).checkpoints.all()[-1].path
    return {path.name: path.read_bytes() for path in last.rglob("*.safetensors")}


def test_a_run_whose_rates_fall_over_its_budget_is_not_extended(
    config: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    colearn("train", config, "--out", folder, "--set", "models.*.schedule=linear")
    code, _, err = colearn("train", "--out", folder, *LONGER)
    assert code == 2
    told = "train.environment_steps was 4, is 8, and models.*.schedule follows it"
    assert f"first difference: {told}" in err and err.count("\n") == 1
    assert colearn("train", "--out", folder, "--resume")[0] == 0


@pytest.mark.parametrize(
    ("pair", "difference"),
    [
        ("train.episodes=2", "train.episodes was 1, is 2"),
        ("run.seed=3", "run.seed was 0, is 3"),
        ("algorithm.rollout.k=4", "algorithm.rollout.k was 2, is 4"),
    ],
)
def test_another_run_is_not_made_of_it_and_the_first_difference_is_named(
    folder: Path, pair: str, difference: str
) -> None:
    code, _, err = colearn("train", "--out", folder, "--resume", "--set", pair)
    assert code == 2
    assert f"first difference: {difference}" in err and err.count("\n") == 1


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: a write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [300, 30_000], ids=["the config", "a checkpoint"])
def test_a_full_disk_is_one_line(config: Path, tmp_path: Path, size: int) -> None:
    with disk_of(size):
        code, _, err = colearn("train", config, "--out", tmp_path / "run")
    assert code == 2
    assert err.count("\n") == 1
    assert "cannot write" in err and "kept: no checkpoint" in err


def test_a_disk_that_fills_up_later_leaves_the_checkpoint_from_which_it_goes_on(
    folder: Path,
) -> None:
    with disk_of(30_000):
        code, _, err = colearn("train", "--out", folder, *LONGER)
    assert code == 2
    assert "kept: the checkpoint of iteration 2" in err and err.count("\n") == 1
    assert f"continue with: colearn train --out {folder} --resume" in err
    assert not list((folder / "checkpoints").glob(".*"))
    code, _, _ = colearn("train", "--out", folder, "--resume")
    assert code == 0
    assert json.loads((folder / "run.json").read_text())["environment_steps"] == 8


@pytest.mark.slow
def test_runs_keep_their_state_and_stop_when_their_comparison_is_killed(
    tmp_path: Path, model: str
) -> None:
    settings = yaml.safe_load(shipped_configs()["quickstart"].read_text())
    settings["models"] = {"*": {"path": model}}
    settings["agents"] = {"*": {"sampling": {"max_tokens": 4}}}
    settings["train"] = {"environment_steps": 1_000_000, "episodes": 2}
    settings["compare"] = {"algorithms": {"magrpo": {}}, "seeds": [0, 1], "workers": 2}
    settings.pop("critic")
    (tmp_path / "long.yaml").write_text(yaml.safe_dump(settings))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "colearn", "compare", str(tmp_path / "long.yaml")]
    with (tmp_path / "told").open("wb") as told:  # the fork server holds it, too
        process = subprocess.Popen(
            [*command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=told
        )
    runs = [RunFolder(out / "runs" / f"magrpo-s{seed}") for seed in (0, 1)]
    until(lambda: all(run.environment_steps() > 0 for run in runs))
    process.kill()
    process.wait()
    until(lambda: all(run.record().status == "interrupted" for run in runs))
    assert "Traceback" not in (tmp_path / "told").read_text()
    for run in runs:
        newest = run.checkpoints.newest()
        assert newest is not None
        assert newest.iteration == max(line.iteration for line in run.lines())


def until(holds: Callable[[], bool], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("command", "place", "options"),
    [
        ("train", "/proc/nowhere", ()),
        ("train", "config.yaml/below", ("--dry-run",)),
        ("compare", "config.yaml", ()),
        ("compare", "/sys/kernel/nowhere", ("--dry-run",)),
    ],
)
def test_a_place_that_cannot_be_written_is_one_line(
    config: Path, command: str, place: str, options: tuple[str, ...]
) -> None:
    out = config.parent / place  # an absolute place stays what it is
    code, _, err = colearn(command, config, "--out", out, *options)
    assert code == 2
    assert err.startswith(f"error: --out {out}: ") and err.count("\n") == 1


@pytest.mark.parametrize(("command", "options"), [("train", ()), ("compare", ("--dry-run",))])
def test_a_device_that_is_not_there_is_one_line(
    config: Path, tmp_path: Path, command: str, options: tuple[str, ...]
) -> None:
    arguments = [command, config, "--out", tmp_path / "run", "--set", "run.device=cuda:77"]
    code, _, err = colearn(*arguments, *options)
    assert code == 2
    assert err.startswith("error: run.device: no device cuda:77 on this machine")
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()
