"""Kills a training run and a comparison at random moments, resumes, and compares bit for bit.

    python benchmarks/kills.py kills.jsonl --kills 100 --comparison-kills 40 [--minutes 5]

A training run is a process that is killed (SIGKILL) after a random time and started again with
--resume, until it ends; then the next run begins. A comparison is killed with all processes that it
has started, or one of these alone: a run, or the process that runs are forked from. What each
leaves must be what an uninterrupted one leaves, but for what a clock says; and a kill may cost no
more than what followed the last checkpoint.

Every run and comparison that came to its end is a line of the file, so this command itself may be
stopped and said again: it goes on behind the last line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import torch

from colearn.config import Config, build_task, dump_config, load_config
from colearn.entry.cli import main as main_of_colearn
from colearn.models.embedded import embedded_model
from colearn.runs.comparison import fork_server, forks
from colearn.runs.record import ComparisonFolder, RunFolder
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment

SETTINGS: dict[str, Any] = {
    "models": {"*": {"path": "embedded-tiny", "learning_rate": 3e-4}},
    "agents": {"*": {"sampling": {"max_tokens": 4}}},
    "critic": {"path": "embedded-tiny", "learning_rate": 3e-3},
    "task.horizon": 1,
    "train.environment_steps": 12,
    "train.episodes": 2,
    "evaluation.every": 3,
    "evaluation.episodes": 1,
    "evaluation.repeats": 1,
    "run.device": "cpu",
    "run.checkpoint_every": 2,
    "compare.algorithms": {"collm_cc": {}, "magrpo": {"algorithm.rollout.k": 2}},
    "compare.seeds": [0],
    "compare.workers": 2,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="where a line is added for each run")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--comparison-kills", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=1e9, help="start nothing new after these")
    chosen = parser.parse_args()
    until = time.monotonic() + 60 * chosen.minutes
    torch.set_num_threads(1)
    config = load_config("quickstart", SETTINGS)
    embedded_model(build_task(config), "embedded-tiny", "models.*.path")
    kinds = {"run": chosen.kills, "comparison": chosen.comparison_kills}
    with tempfile.TemporaryDirectory() as place:
        for kind, wanted in kinds.items():
            victim: Runs | Comparisons | None = None
            while kills_made(chosen.file, kind) < wanted and time.monotonic() < until:
                made = len(list(lines(chosen.file, kind)))
                victim = victim or KINDS[kind](config, Path(place) / kind)
                outcome = victim.kill(random.Random(f"{kind} {made}"))
                with chosen.file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"kind": kind, "number": made, **outcome}) + "\n")
                print(f"{kind} {made}: {outcome}", flush=True)
    for kind in kinds:
        print(json.dumps(summary(chosen.file, kind), indent=1))


def lines(file: Path, kind: str) -> Iterator[dict[str, Any]]:
    if file.exists():
        for text in file.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if line["kind"] == kind:
                yield line


def kills_made(file: Path, kind: str) -> int:
    return sum(line["kills"] for line in lines(file, kind))


def summary(file: Path, kind: str) -> dict[str, Any]:
    made = list(lines(file, kind))
    return {
        f"kills of a {kind}": sum(line["kills"] for line in made),
        f"{kind}s": len(made),
        "bit for bit as the uninterrupted one": sum(line["same"] for line in made),
        **{
            key: sum(line[key] for line in made)
            for key in ("alone", "before any checkpoint")
            if made and key in made[0]
        },
        **(
            {"most iterations lost (a checkpoint every 2)": max(line["lost"] for line in made)}
            if made and "lost" in made[0]
            else {}
        ),
    }


class Runs:
    """Training runs, each in a process that is forked from this one."""

    def __init__(self, config: Config, folder: Path) -> None:
        self.config, self.folder = config, folder
        load_team(config)  # every import is made here, once for all processes
        started = time.perf_counter()
        wait(fork_run(config, folder / "whole", resume=False))
        self.seconds = time.perf_counter() - started
        self.whole = left(RunFolder(folder / "whole"))
        print(f"an uninterrupted run takes {self.seconds:.1f} s", flush=True)

    def kill(self, rng: random.Random) -> dict[str, Any]:
        """One run, killed until it ends before its time has come."""
        run = RunFolder(Path(tempfile.mkdtemp(dir=self.folder)) / "run")
        kills, lost, before_any = 0, 0, 0
        while run.status != "finished":
            child = fork_run(self.config, run.path, resume=run.status != "not started")
            time.sleep(rng.uniform(0, self.seconds))
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                must_be_well(status)
                continue
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kills += 1
            reached = max((line.iteration for line in run.lines()), default=0)
            newest = run.checkpoints.newest()
            before_any += newest is None
            lost = max(lost, reached - (0 if newest is None else newest.iteration))
        same = left(run) == self.whole
        return {"kills": kills, "same": same, "lost": lost, "before any checkpoint": before_any}


def fork_run(config: Config, folder: Path, *, resume: bool) -> int:
    """A process of its own that makes the run; its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        Experiment(config, folder, resume=resume).run()
        status = 0
    finally:
        os._exit(status)


def wait(child: int) -> None:
    must_be_well(os.waitpid(child, 0)[1])


def must_be_well(status: int) -> None:
    if status:
        raise SystemExit(f"a run that nobody killed ended with status {status}")


class Comparisons:
    """`colearn compare` of two runs; all processes are forked from this one, which has imported
    everything, or most kills would meet imports."""

    def __init__(self, config: Config, folder: Path) -> None:
        folder.mkdir(parents=True)
        file = folder / "kills.yaml"
        file.write_text(dump_config(config))
        self.folder = folder
        self.command = ["colearn", "compare", str(file), "--out"]
        forks.subprocess = SimpleNamespace(  # type: ignore[attr-defined]
            **{**vars(subprocess), "Popen": Forked}
        )
        for name in ("unhurried", "whole"):  # the first one makes the imports that are left
            started = time.perf_counter()
            must_be_well(self.start(folder / name).wait())
            self.seconds = time.perf_counter() - started
        self.whole = self.left(folder / "whole")
        print(f"an uninterrupted comparison takes {self.seconds:.1f} s", flush=True)

    def start(self, out: Path) -> Forked:
        with Path(os.devnull).open("wb") as nothing:
            return Forked([*self.command, str(out)], stdout=nothing)

    def left(self, out: Path) -> list[dict[str, Any]]:
        """A run whose fork server was killed is told to end and saves its state then: it may keep
        another checkpoint before the newest one."""
        every = [left(run) for _, run in ComparisonFolder(out).planned()]
        return [{**run, "checkpoints": run["checkpoints"][-1]} for run in every]

    def kill(self, rng: random.Random) -> dict[str, Any]:
        """One comparison, killed until it ends before its time has come; every second kill meets
        one of its processes alone, whose runs it then reports as failed."""
        out = Path(tempfile.mkdtemp(dir=self.folder)) / "comparison"
        kills, alone, code = 0, 0, None
        while code != 0:
            process = self.start(out)
            try:
                code = process.wait(timeout=rng.uniform(0, self.seconds))
                continue
            except subprocess.TimeoutExpired:
                kills += 1
            below = descendants(process.pid)
            if below and rng.random() < 0.5:
                kill(rng.choice(below))
                alone += 1
            else:
                for number in (process.pid, *below):
                    kill(number)
            code = process.wait()
        return {"kills": kills, "same": self.left(out) == self.whole, "alone": alone}


class Forked:
    """What a comparison and its fork server use of `subprocess.Popen`, as a fork of this process,
    which has imported everything: `colearn ...`, or the server itself."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        stdout: IO[bytes] | int,
        env: Mapping[str, str] | None = None,
        **others: Any,
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        serves = "colearn.runs.comparison.fork_server" in arguments
        asked, heard = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(asked[0])
            os.close(heard[1])
            self.stdin = os.fdopen(asked[1], "wb", buffering=0)
            self.stdout = os.fdopen(heard[0], "rb", buffering=0)
            return
        os.setsid()
        if serves:
            os.dup2(asked[0], 0)
            os.dup2(heard[1], 1)
        else:
            assert not isinstance(stdout, int)
            os.dup2(stdout.fileno(), 1)
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        os.closerange(3, 1024)  # locks of the one that forked
        os.environ.update(env or {})
        sys.argv = [*arguments]
        status: int | str | None = 1
        try:
            if serves:
                fork_server.main()
            else:
                main_of_colearn()
            status = 0
        except SystemExit as stop:
            status = stop.code
        finally:
            sys.stdout.flush()
            os._exit(status if isinstance(status, int) else 0 if status is None else 1)

    def poll(self) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float = float("inf")) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("colearn", timeout)
            time.sleep(0.01)
        return code


def kill(number: int) -> None:
    with suppress(ProcessLookupError):  # it has ended by itself
        os.kill(number, signal.SIGKILL)


def descendants(parent: int) -> list[int]:
    """Of those that still live."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except FileNotFoundError:
        return []
    children = [int(number) for number in text.split()]
    return [*children, *(below for child in children for below in descendants(child))]


def left(run: RunFolder) -> dict[str, Any]:
    """What a run leaves, without what a clock says."""
    lines = [line.model_dump(exclude={"wall_seconds"}) for line in run.lines()]
    for line in lines:
        line["metrics"] = {k: v for k, v in line["metrics"].items() if "seconds" not in k}
    newest = run.checkpoints.newest()
    assert newest is not None
    sums = {
        str(path.relative_to(newest.path)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(newest.path.glob("*/*"))
    }
    return {
        "lines": lines,
        "episodes": [episode.model_dump() for episode in run.episodes()],
        "progress": newest.progress.model_dump(exclude={"wall_seconds"}),
        "checkpoints": [checkpoint.iteration for checkpoint in run.checkpoints.all()],
        "weights and optimiser": sums,
        "status": run.status,
    }


KINDS: dict[str, type[Runs] | type[Comparisons]] = {"run": Runs, "comparison": Comparisons}


if __name__ == "__main__":
    main()
