"""Run folders as the training loop writes them, with made-up numbers, and processes that make
them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import pytest
import yaml

import colearn
from colearn.runs.comparison.launch import launch_jobs

CONFIG = {
    "task": {"name": "str_build", "horizon": 2, "words": ["ICML", "A|B"]},
    "algorithm": {"name": "collm_cc", "discount": 0.9},
    "models": {"*": {"path": "embedded"}},
    "critic": {"path": "embedded"},
    "train": {"environment_steps": 400},
    "evaluation": {"every": 5},
}
GAINS = {"collm_cc": 0.9, "magrpo": 0.6, "collm_dc": 0.1}
TEXT = "place <b>stone</b> & 'wood' at (1, 2)\nthen \x07 stop"


def curve(algorithm: str, seed: int, points: int = 13) -> list[float]:
    noise = np.random.default_rng([seed, len(algorithm)]).normal(0, 0.04, points)
    gain = GAINS.get(algorithm, 0.3)
    rise = gain * (1 - np.exp(-np.linspace(0, 4, points))) + noise + 0.03 * seed
    return [float(value) for value in -0.25 + rise]


def evaluations(algorithm: str, returns: Sequence[float]) -> list[dict[str, Any]]:
    pace = 4 if algorithm == "magrpo" else 1
    return [
        {
            "kind": "evaluation",
            "iteration": 5 * index,
            "environment_steps": round(400 * index / (len(returns) - 1)),
            "generated_tokens": 2100 * index * (3 if pace == 4 else 2),
            "updates": 10 * index // pace,
            "wall_seconds": 11.7 * index / pace,
            "metrics": {
                "return": value,
                "iou": 0.5 + value / 3,
                "adjacency": 14.0 - 6 * value,
                "response_seconds": 1.9 - 0.3 * value,
                "tokens_per_turn": 61.5 - 12 * value,
                "turns": 2.0,
            },
        }
        for index, value in enumerate(returns)
    ]


def record(algorithm: str, seed: int, returns: Sequence[float], status: str) -> dict[str, Any]:
    last = evaluations(algorithm, returns)[-1]
    return {
        "status": status,
        "algorithm": algorithm,
        "task": "str_build",
        "seed": seed,
        "agents": ["left", "right"],
        "models": {"left": "embedded", "right": "embedded"},
        "parameters": {"left": 131072, "right": 131072, "critic": 140001},
        "version": colearn.__version__,
        "started": "2026-01-01T00:00:00",
        "wall_seconds": last["wall_seconds"] + seed,
        "peak_memory_bytes": 812_000_000 + 1_000_000 * seed,
        "iterations": last["iteration"],
        "environment_steps": last["environment_steps"],
        "joint_actions": last["environment_steps"],
        "generated_tokens": last["generated_tokens"],
        "updates": last["updates"],
        "rollouts": 20 if algorithm == "magrpo" else 200,
        "optimum": 1.0,
        "first": {"return": returns[0]},
        "last": {"return": returns[-1]},
    }


def episode(iteration: int, item: str, value: float, text: str) -> dict[str, Any]:
    turns = [
        {
            "reward": value / 2,
            "observations": {"left": f"turn {t}: build <ICML>", "right": f"turn {t}: you have oak"},
            "actions": {"left": text, "right": "ok " * 40},
            "rendered": "#..#\n<##>\n#..#",
        }
        for t in range(2)
    ]
    return {
        "iteration": iteration,
        "episode": 0,
        "item": item,
        "return": value,
        "metrics": {"iou": 0.5},
        "turns": turns,
    }


def write_jsonl(path: Path, lines: Sequence[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_run(
    folder: Path, algorithm: str, seed: int, *, status: str = "finished", text: str = TEXT
) -> None:
    """One whole run folder; below a folder `runs`, it is one of the comparison above."""
    if folder.parent.name == "runs":
        _plan(folder.parent.parent / "compare.json", folder.name, seed)
    returns = curve(algorithm, seed)
    folder.mkdir(parents=True)
    config = {**CONFIG, "algorithm": {"name": algorithm, "discount": 0.9}, "run": {"seed": seed}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "run.json").write_text(json.dumps(record(algorithm, seed, returns, status)))
    lines = evaluations(algorithm, returns)
    update = {**lines[0], "kind": "update", "iteration": 1, "environment_steps": 8}
    update["metrics"] = {"loss": 0.5, "left/grad_norm": 1.5}
    write_jsonl(folder / "metrics.jsonl", [lines[0], update, *lines[1:]])
    last = lines[-1]["iteration"]
    transcripts = [
        episode(0, "icml", returns[0], text),
        episode(last, "other", 0.125, text),
        episode(last, "icml", returns[-1], text),
    ]
    write_jsonl(folder / "episodes.jsonl", transcripts)


def _plan(file: Path, run: str, seed: int) -> None:
    """Add a run to the record of a comparison; its label is in the folder's name."""
    plan = json.loads(file.read_text()) if file.exists() else {"algorithms": [], "runs": []}
    label = run.rpartition("-s")[0] or run
    plan["version"] = colearn.__version__
    plan["algorithms"] = sorted({*plan["algorithms"], label})
    plan["runs"].append({"run": run, "algorithm": label, "seed": seed})
    plan["runs"].sort(key=lambda entry: entry["run"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(plan))


def write_comparison(
    folder: Path, seeds: Sequence[int] = range(5), algorithms: Sequence[str] = tuple(GAINS)
) -> Path:
    """The folder of a comparison whose runs are all finished."""
    for algorithm in algorithms:
        for seed in seeds:
            write_run(folder / "runs" / f"{algorithm}-s{seed}", algorithm, seed)
    return folder


class Forked:
    """A process that the tests forked, with the methods of `Popen` that a comparison calls."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        return self._ended(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int | None:
        return self._ended(0)

    def _ended(self, options: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, options)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


class Forks:
    """The fork server of a comparison whose runs are `made`, or the program `program`."""

    program: Sequence[str] = ()

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def begin(self) -> None: ...

    def start(
        self, arguments: Sequence[str], log: Path, *, append: bool, environment: Mapping[str, str]
    ) -> Forked | subprocess.Popen[bytes]:
        with log.open("ab" if append else "wb") as file:
            if not self.program:
                return Forked(os.fork() or _made(arguments, file))
            return subprocess.Popen(
                self.program,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**self.environment, **environment},
                start_new_session=True,
            )


def _made(arguments: Sequence[str], log: IO[bytes]) -> NoReturn:
    """Make a run as `colearn train CONFIG --out RUN [--resume]` does, and end this process."""
    os.setsid()
    code = 1
    with open(log.fileno(), "w", closefd=False) as told:
        sys.stdout = sys.stderr = told
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            make_run(Path(arguments[1]), Path(arguments[3]), "--resume" in arguments)
            code = 0
        except BaseException:  # noqa: BLE001 - the comparison tells its last line
            traceback.print_exc(file=told)
        finally:
            told.flush()
            os._exit(code)  # the tests belong to the other process


def make_runs(monkeypatch: pytest.MonkeyPatch, *program: str) -> None:
    """Let comparisons make their runs by forks of this process, or else by `program`, and look
    after them without a pause."""
    chosen = type("Chosen", (Forks,), {"program": program})
    monkeypatch.setattr("colearn.runs.comparison.launch.Forks", chosen)
    for module in ("api", "suite"):
        quick = partial(launch_jobs, poll_seconds=0.005)
        monkeypatch.setattr(f"colearn.runs.comparison.{module}.launch_jobs", quick)


def make_run(config_path: Path, folder: Path, resume: bool) -> None:
    """Write a run in two halves. A file `fault` in the comparison's folder decides what goes
    wrong."""
    config = yaml.safe_load(config_path.read_text())
    algorithm, seed = config["algorithm"]["name"], config["run"]["seed"]
    fault_file = config_path.parent.parent / "fault"
    fault = fault_file.read_text() if fault_file.exists() else ""
    print(f"making {algorithm} {seed}, resume {resume}", flush=True)
    if fault == f"crash {algorithm}-s{seed}":
        raise RuntimeError("the batch is not finite")
    returns = curve(algorithm, seed)
    lines = evaluations(algorithm, returns)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert resume == (folder / "run.json").exists()
    if fault == "hang":
        (folder / "hanging").write_text(str(os.getpid()))
    if not resume:
        (folder / "run.json").write_text(json.dumps(record(algorithm, seed, returns, "running")))
        write_jsonl(folder / "metrics.jsonl", lines[:5])
    if fault == f"die {algorithm}-s{seed}":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hang":
        time.sleep(60)
    write_jsonl(folder / "metrics.jsonl", lines)
    (folder / "run.json").write_text(json.dumps(record(algorithm, seed, returns, "finished")))
