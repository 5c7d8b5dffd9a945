"""Comparisons of Python objects, resumes of object runs in another process, and several ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import colearn
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import load_config
from colearn.contract import Callback
from colearn.errors import ColearnError, ConfigError
from colearn.rollout.shapes import Parallel
from tests.helpers.reward_functions import matches
from tests.helpers.tiny import Notes, save_model
from tests.integration.test_objects import ROWS, TEAM, TINY, measured

SECTIONS: dict[str, Any] = {
    "agents": {"*": {"sampling": {"max_tokens": 4}}},
    "train": {"environment_steps": 400, "episodes": 1, "iterations": 2},
    "evaluation": {"every": 1, "episodes": 4},
    "run": {"device": "cpu", "threads": 1},
}
GIVEN: dict[str, Any] = {"models": TINY, "data": ROWS, "reward": matches, **SECTIONS}


def three() -> MAGRPO:
    return MAGRPO(rollout=Parallel(k=3))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> colearn.ComparisonResult:
    out = tmp_path_factory.mktemp("compared") / "out"
    return colearn.compare(TEAM, out, algorithms=["magrpo", three()], seeds=2, **GIVEN)


def test_each_run_of_a_comparison_is_that_of_train(
    compared: colearn.ComparisonResult, tmp_path: Path
) -> None:
    for label, algorithm in (("magrpo", "magrpo"), ("magrpo_2", three())):
        alone = colearn.train(TEAM, algorithm, seed=1, out=tmp_path / label, **GIVEN)
        assert measured(compared.folder / "runs" / f"{label}-s1") == measured(alone.folder)


def test_a_comparison_has_a_report_and_its_numbers(compared: colearn.ComparisonResult) -> None:
    assert compared.report.name == "report.html" and compared.report.is_file()
    assert list(compared.summary["algorithms"]) == ["magrpo", "magrpo_2"]
    assert "| magrpo_2 |" in str(compared) and compared.summary["headline"] in str(compared)


@pytest.mark.slow
def test_finished_runs_are_kept_and_another_seed_extends(
    compared: colearn.ComparisonResult,
) -> None:
    before = {p: p.stat().st_mtime_ns for p in compared.folder.glob("runs/*/metrics.jsonl")}
    again = colearn.compare(
        TEAM, compared.folder, algorithms=["magrpo", three()], seeds=[0, 1, 5], **GIVEN
    )
    after = {p: p.stat().st_mtime_ns for p in again.folder.glob("runs/*/metrics.jsonl")}
    assert {path: after[path] for path in before} == before and len(after) == 6


def test_objects_without_a_name_are_compared_in_this_process(tmp_path: Path) -> None:
    class Local(MAGRPO):
        pass

    folder = save_model(tmp_path / "model")
    result = colearn.compare(
        Notes(items=2), tmp_path / "out", algorithms={"mine": Local(), "untrained": "untrained"},
        seeds=1, models=folder, **SECTIONS,
    )  # fmt: skip
    assert list(result.summary["algorithms"]) == ["mine", "untrained"]


def test_what_has_a_name_is_compared_in_processes_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    reward = "tests.helpers.reward_functions:matches"
    given = {**GIVEN, "data": tmp_path / "rows.jsonl", "reward": reward}
    result = colearn.compare(TEAM, tmp_path / "out", algorithms=["magrpo"], seeds=1, **given)
    assert (result.folder / "runs" / "magrpo-s0" / "log.txt").is_file()


class Fails(Callback):
    def on_rollout(self, event):
        raise ConfigError("this run fails; let it")


@pytest.mark.slow
def test_a_run_that_fails_is_named_behind_the_report_of_the_others(tmp_path: Path) -> None:
    sections = {**GIVEN, "callbacks": [Fails()]}
    with pytest.raises(ColearnError, match=r"^1 of 2 runs failed: magrpo-s0: this run fails; let"):
        names = ["magrpo", "untrained"]
        colearn.compare(TEAM, tmp_path / "out", algorithms=names, seeds=1, **sections)
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"algorithms": "magrpo"}, "algorithms: 'magrpo' is one name; give a list"),
        ({"algorithms": [3]}, "algorithm: int is no Algorithm; give a name, or an object or a"),
        ({"algorithms": ["magrop"]}, "algorithm: unknown algorithm 'magrop'; did you mean 'magrpo"),
        ({"algorithms": [], "seeds": 1}, "algorithms: name one or more to compare"),
        ({"algorithms": ["magrpo"], "seeds": 0}, "seeds 0: is how many seeds, 1 to 10,000"),
        ({"modles": TINY}, "modles: no such argument; did you mean 'models'?"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_line(arguments: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(ColearnError) as told:
        colearn.compare(TEAM, tmp_path / "out", **{**GIVEN, **arguments})
    assert str(told.value).startswith(line)
    assert not (tmp_path / "out").exists()


def test_a_config_says_all_but_algorithms_seeds_and_workers(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^models: the config says it; set it there"):
        colearn.compare(load_config("quickstart"), tmp_path / "out", models=TINY)


PROGRAM = """
import sys
import colearn
from tests.integration.test_objects import ROWS, TEAM, TINY
from tests.integration.test_objects_compared import SECTIONS

def longest(prompts, completions, **kwargs):
    return [float(len(said)) for said in completions]

iterations = int(sys.argv[2])
train = {**SECTIONS["train"], "environment_steps": iterations * 4}
del train["iterations"]
colearn.train(
    TEAM, "magrpo", models=TINY, data=ROWS, reward=longest, out=sys.argv[1],
    resume=sys.argv[3:] == ["resume"], **{**SECTIONS, "train": train},
)
"""


def program(out: Path, iterations: int, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(out), str(iterations), *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_run_of_objects_goes_on_in_another_process_that_gives_them_again(tmp_path: Path) -> None:
    program(tmp_path / "whole", 4)
    told = program(tmp_path / "parts", 2)
    assert told.count("pass the same objects again: longest, rows_") == 1
    program(tmp_path / "parts", 4, "resume")
    last = {(line["kind"], line["iteration"]): line for line in measured(tmp_path / "parts")}
    assert list(last.values()) == measured(tmp_path / "whole")


def test_one_rank_says_which_objects_a_resume_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from colearn.entry.python.named import Names

    names = Names()
    names.add(object(), "rows")
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        names.tell(tmp_path)
    assert capsys.readouterr().err.count("pass the same objects again: rows") == 1


def test_several_ranks_need_a_folder_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=r"^out: missing; name the folder that all processes"):
        colearn.train(TEAM, "magrpo", **GIVEN)
