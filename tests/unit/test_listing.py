"""Lists on a terminal: whole words in the width there is, one line each where nobody says one."""

from __future__ import annotations

import pytest

from colearn.cli.listing import configs
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
