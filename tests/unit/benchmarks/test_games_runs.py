"""Games of several runs: words that a model lacks, and runs whose folders share a name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import yaml

from colearn.runs.record import open_run

FOLDER = Path(__file__).parents[3] / "benchmarks"
sys.path.append(str(FOLDER))
spec = importlib.util.spec_from_file_location("benchmark_games", FOLDER / "games.py")
assert spec is not None and spec.loader is not None
games = importlib.util.module_from_spec(spec)  # `games` alone is a module of the tests
spec.loader.exec_module(games)


def run_of(folder: Path, path: str, trained: str | list[str] = "kuhn_poker") -> Path:
    folder.mkdir(parents=True)
    config = {
        "task": {"name": "open_spiel", "games": trained, "prompt": "compact"},
        "algorithm": {"name": "marshal"},
        "models": {"player": {"path": path}},
        "agents": {"*": {"model": "player"}},
        "train": {"environment_steps": 8},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


def test_a_game_without_words_is_one_line_that_names_it(tmp_path, capsys):
    run = run_of(tmp_path / "specialist", "embedded-tiny:3")
    with pytest.raises(SystemExit) as stop:
        games.main([str(run), "--on", "mini_hanabi", "tic_tac_toe"])
    assert stop.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"games.py: --on: {run} has no words for mini_hanabi, tic_tac_toe; its embedded model "
        "knows kuhn_poker; give a run of a config with all these games"
    )


def test_games_with_words_are_left_in(tmp_path, capsys):
    run = run_of(tmp_path / "generalist", "embedded", ["kuhn_poker", "mini_hanabi"])
    assert games.worded(open_run(run), ["mini_hanabi", "tic_tac_toe"]) == ["mini_hanabi"]
    assert "no words for tic_tac_toe;" in capsys.readouterr().err
    assert games.worded(open_run(run), ["mini_hanabi", "kuhn_poker"]) == [
        "mini_hanabi",
        "kuhn_poker",
    ]
    assert capsys.readouterr().err == ""


def test_a_pretrained_model_has_words_for_every_game(tmp_path, capsys):
    run = run_of(tmp_path / "pretrained", "organisation/model")
    assert games.worded(open_run(run), ["tic_tac_toe"]) == ["tic_tac_toe"]
    assert capsys.readouterr().err == ""


def test_a_folder_without_a_run_is_one_line(tmp_path):
    with pytest.raises(SystemExit, match=r"^games.py: .*no run here"):
        games.main([str(tmp_path / "nothing")])


def test_runs_of_one_name_have_rows_of_their_own():
    one, other, third = Path("kuhn/runs/a-s0"), Path("hanabi/runs/a-s0"), Path("kuhn/runs/b-s0")
    names = games.names_of([one, other, third])
    assert names == {one: "kuhn/runs/a-s0", other: "hanabi/runs/a-s0", third: "b-s0"}
    rows = [
        {"run": names[one], "game": "kuhn_poker", "normalised": 40.0},
        {"run": names[other], "game": "kuhn_poker", "normalised": 80.0},
    ]
    assert games.cross_table(rows).splitlines()[2:] == [
        "| kuhn/runs/a-s0 | 40.0 |",
        "| hanabi/runs/a-s0 | 80.0 |",
    ]
