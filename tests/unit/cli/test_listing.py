"""Lists on a terminal: whole words in the width there is, one line each where nobody says one."""

from __future__ import annotations

import inspect
import re

import pytest

from colearn.config import build_algorithm, load_config, shipped_configs
from colearn.entry.cli.listing import algorithms, check, configs, settings, tasks
from colearn.errors import ConfigError
from colearn.registry import algorithm_class, names, task_class


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_list_fits_a_narrow_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    configs()
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", str(width))
    configs()
    wrapped = capsys.readouterr().out
    assert wrapped.split() == whole.split()
    assert max(map(len, wrapped.splitlines())) <= width
    assert [line.split()[0] for line in whole.splitlines()] == list(shipped_configs())


@pytest.mark.parametrize("listed", [algorithms, tasks])
def test_no_two_entries_are_told_alike(
    listed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    listed()
    told = [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()]
    assert len(told) == len(set(told))
    assert [line for line in told if not line.endswith(".")] == []


@pytest.mark.parametrize("name", names("tasks"))
def test_a_task_lists_every_setting_with_a_sentence_a_type_and_a_default(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    tasks(name)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("task.")]
    known = inspect.signature(task_class(name)).parameters
    assert [row.split()[0].removeprefix("task.") for row in rows] == list(known)
    for row in rows:
        assert re.fullmatch(r"task\.\w+.*\. \(.+, (default .+|required)\)", row), row


@pytest.mark.parametrize("name", names("algorithms"))
def test_an_algorithm_says_when_it_is_wrong(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    algorithms(name)
    assert "Wrong when" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", names("algorithms"))
def test_an_algorithm_lists_the_keys_that_a_config_may_set(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    algorithms(name)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("algorithm.")]
    task = {"name": "str_build"}
    for row in rows:
        with pytest.raises(ConfigError) as refused:  # no setting holds this
            config = {"task": task, "models": {}, "algorithm": {"name": name}}
            build_algorithm(load_config(config, {row.split()[0]: object()}))
        assert "unknown" not in str(refused.value)
    assert rows


def test_an_algorithm_lists_the_values_that_it_gives_its_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    algorithms("grpo")
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    default = algorithm_class("grpo")().parts().rollout
    assert f"default {default.k})" in rows["algorithm.rollout.k"]
    assert rows["algorithm.rollout"].endswith("(section, default parallel)")


def test_a_config_is_shown_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    configs("quickstart")
    assert capsys.readouterr().out == shipped_configs()["quickstart"].read_text()


@pytest.mark.parametrize(
    ("listed", "name", "said"),
    [
        (tasks, "sudokku", "task: unknown task 'sudokku'; did you mean 'sudoku'?"),
        (algorithms, "magrp", "algorithm: unknown algorithm 'magrp'; did you mean 'magrpo'?"),
        (configs, "quickstat", "config: unknown 'quickstat'; did you mean 'quickstart'?"),
    ],
)
def test_a_misspelt_name_is_one_line_with_the_nearest(listed, name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        listed(name)


def test_every_setting_of_a_config_is_listed_with_its_sentence_and_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    settings()
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    facts = r"\(integer, ≥ 1, ≤ 1e\+06, default 4\)"
    assert re.fullmatch(rf"train\.episodes +\w.*\bB\b.*\. {facts}", rows["train.episodes"])
    assert {"task", "models.NAME.lora.rank", "agents.NAME.sampling.top_p", "run.seed"} <= set(rows)
    settings("train")
    below = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert below == [key for key in rows if key.startswith("train.")]
    with pytest.raises(ConfigError, match="no section 'trian'; did you mean 'train'"):
        settings("trian")


@pytest.mark.parametrize("key", ["horizon", "task.horizon"])
def test_a_checked_tasks_settings_are_named_with_or_without_their_section(key: str) -> None:
    with pytest.raises(ConfigError, match=r"^task\.horizon: must lie in 1 to 100,000, got 0"):
        check("str_build", [f"{key}=0"])
