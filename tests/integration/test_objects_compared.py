"""Comparisons of Python objects, and several ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from undrawn import undrawn

import colearn
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import load_config
from colearn.contract import Callback
from colearn.errors import ColearnError, ConfigError
from colearn.rollout.shapes import Parallel
from tests.helpers.fabricated_runs import make_runs
from tests.helpers.tiny import Notes, save_model
from tests.integration.test_objects import ROWS, TEAM, TINY, even, measured

SECTIONS: dict[str, Any] = {
    "agents": {"*": {"sampling": {"max_tokens": 4}}},
    "train": {"environment_steps": 400, "episodes": 1, "iterations": 1},
    "evaluation": {"every": 1, "episodes": 2},
    "run": {"device": "cpu", "threads": 1},
}
GIVEN: dict[str, Any] = {"models": TINY, "data": ROWS, "reward": even, **SECTIONS}


def three() -> MAGRPO:
    return MAGRPO(rollout=Parallel(k=3))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> colearn.ComparisonResult:
    out = tmp_path_factory.mktemp("compared") / "out"
    with undrawn():
        return colearn.compare(TEAM, out, algorithms=["untrained", three()], seeds=[1], **GIVEN)


def test_each_run_of_a_comparison_is_that_of_train(
    compared: colearn.ComparisonResult, tmp_path: Path
) -> None:
    alone = colearn.train(TEAM, three(), seed=1, out=tmp_path / "alone", **GIVEN)
    assert measured(compared.folder / "runs" / "magrpo-s1") == measured(alone.folder)


def test_a_comparison_has_a_report_and_its_numbers(compared: colearn.ComparisonResult) -> None:
    assert compared.report.name == "report.html" and compared.report.is_file()
    assert list(compared.summary["algorithms"]) == ["untrained", "magrpo"]
    assert "| magrpo |" in str(compared) and compared.summary["headline"] in str(compared)


class Fails(Callback):
    def on_rollout(self, event):
        raise ConfigError("this run fails; let it")


@pytest.mark.usefixtures("no_figures")
def test_objects_are_compared_in_this_process_which_keeps_finished_runs(tmp_path: Path) -> None:
    class Local(MAGRPO):
        pass

    given: dict[str, Any] = {
        "algorithms": {"mine": Local(), "untrained": "untrained"},
        "models": save_model(tmp_path / "model"),
        "callbacks": [Fails()],
        **SECTIONS,
    }
    task, out = Notes(items=2), tmp_path / "out"
    with pytest.raises(ColearnError, match=r"^1 of 2 runs failed: mine-s0: this run fails; let it"):
        colearn.compare(task, out, seeds=1, **given)
    assert (out / "report.html").is_file()
    finished = out / "runs" / "untrained-s0" / "metrics.jsonl"
    before = finished.stat().st_mtime_ns
    with pytest.raises(ColearnError, match=r"^2 of 4 runs failed: mine-s0: "):
        colearn.compare(task, out, seeds=[0, 5], **given)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["algorithms"]["untrained"]["seeds"] == [0, 5]
    assert finished.stat().st_mtime_ns == before


@pytest.mark.usefixtures("no_figures")
def test_what_has_a_name_is_compared_in_processes_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_runs(monkeypatch)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    reward = "tests.helpers.reward_functions:matches"
    given = {**GIVEN, "data": tmp_path / "rows.jsonl", "reward": reward}
    result = colearn.compare(TEAM, tmp_path / "out", algorithms=["magrpo"], seeds=1, **given)
    log = result.folder / "runs" / "magrpo-s0" / "log.txt"
    assert log.read_text() == "making magrpo 0, resume False\n"


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
