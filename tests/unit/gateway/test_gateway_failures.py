"""Why a program failed: its exception, and the line of the program that led to it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from colearn.programs.gateway.failures import last_words, raised
from colearn.programs.gateway.program_run import ProgramRun
from colearn.programs.gateway.programs import CommandProgram, Endpoints

URLS = Endpoints("http://127.0.0.1:9/episodes/0", {"one": "http://127.0.0.1:9"})


def reads(text: str) -> Any:
    return json.loads(text)  # fails inside the library


def test_the_line_of_the_program_is_named_and_not_that_of_a_library() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        reads("{")
    place = f"({__file__}, line {reads.__code__.co_firstlineno + 1})"
    assert raised(caught.value).startswith("JSONDecodeError: Expecting property name")
    assert raised(caught.value).endswith(place)


def test_an_error_without_a_line_of_a_program_names_none() -> None:
    assert raised(ValueError("never raised")) == "ValueError: never raised"


def test_a_module_that_is_not_python_is_named_with_its_line(tmp_path: Path) -> None:
    source = tmp_path / "program.py"
    source.write_text("a = 1\nb = (\n")
    with pytest.raises(SyntaxError) as caught:
        compile(source.read_text(), str(source), "exec")
    assert raised(caught.value).endswith(f"({source}, line 2)")


def test_a_command_names_the_line_of_its_program(tmp_path: Path) -> None:
    source = tmp_path / "program.py"
    source.write_text("import json\n\n\ndef main():\n    json.loads('{')\n\n\nmain()\n")
    live = ProgramRun(0, ["one"], "item")
    CommandProgram([sys.executable, str(source)]).start(live, URLS)
    live.wait(600)
    assert live.failure is not None
    assert live.failure.startswith("exit code 1: json.decoder.JSONDecodeError: Expecting")
    assert live.failure.endswith(f"({source}, line 5)")


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (b"", "no message"),
        (b"no more\n\n", "no more"),
        (b'  File "a.py", line 3, in f\nKeyError: 1\n', "KeyError: 1 (a.py, line 3)"),
        (b'File "x/site-packages/y.py", line 3, in f\nKeyError: 1', "KeyError: 1"),
        (b'  File "a.py", line ' + b"9" * 5000 + b"\nE", "E (a.py, line 999999999)"),
    ],
)
def test_the_last_words_of_a_process(stderr: bytes, said: str) -> None:
    assert last_words(stderr) == said


def test_the_traceback_is_as_python_prints_it() -> None:
    code = "def f():\n    raise KeyError('key')\nf()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert last_words(ended.stderr) == "KeyError: 'key' (<string>, line 2)"


def test_an_async_program_names_its_own_line() -> None:
    async def play() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(play())
    assert raised(caught.value) == f"RuntimeError: no ({__file__}, line {_first_line(play) + 2})"


def _first_line(function: Any) -> int:
    line: int = function.__code__.co_firstlineno
    return line
