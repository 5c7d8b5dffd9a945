"""Code that a config names and that ends the program, such as a callback that calls sys.exit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from colearn.entry import cli


def ended(monkeypatch, capsys, stop):
    """The status and the words of a command in which `stop` is called."""
    monkeypatch.setattr(cli, "app", lambda **_: stop())
    with pytest.raises(SystemExit) as end:
        cli._run(["train"])
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("given", "status"), [(1, 1), (3, 3), (0, 2), (None, 2), ("no", 2)])
def test_it_is_one_line_with_its_place_whatever_the_status(monkeypatch, capsys, given, status):
    code, said = ended(monkeypatch, capsys, lambda: sys.exit(given))
    assert code == status
    assert said.startswith(f"error: {__file__}, line ") and said.count("\n") == 1
    assert "code of the config's ended the program" in said


def test_a_commands_own_status_has_no_such_line(monkeypatch, capsys):
    command = compile(
        "raise SystemExit(143)", str(Path(cli.__file__).with_name("train.py")), "exec"
    )
    code, said = ended(monkeypatch, capsys, lambda: exec(command))
    assert code == 143 and said == ""
