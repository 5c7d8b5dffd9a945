"""Lists on a terminal: whole words in the width there is, one line each where nobody says one."""

from __future__ import annotations

import pytest

from colearn.cli.listing import algorithms, configs, tasks
from colearn.config import shipped_configs


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
