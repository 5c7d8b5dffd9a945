"""Inputs that mean something else than they say, or never end: one line each, or read as written.

Rows of data, configs, arguments, the environment, cards and programs; the table is
`benchmarks/results/reports.md`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from colearn.config import load_config
from colearn.deploy.export.card import one_cell
from colearn.errors import ColearnError
from colearn.programs.gateway.items import read_items
from colearn.programs.gateway.program_run import ProgramRun
from colearn.programs.gateway.programs import CommandProgram, Endpoints
from colearn.tasks.dataset.data import RowSource, read_rows
from colearn.training.learners.sft.dialogues import read_dialogues

HEAD = "task: str_build\nmodels: {}\n"


def rows(file: Path) -> list[dict[str, Any]]:
    return [row for _, row in read_rows(RowSource(path=str(file)))]


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(ColearnError) as told:
        call(*arguments)
    assert "\n" not in str(told.value)
    return str(told.value)


# --- rows of data -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_a_key_that_a_row_has_twice_is_named(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"rows{suffix}"
    row = '{"prompt": "a", "answer": "right", "answer": "wrong"}'
    file.write_text(row if suffix == ".jsonl" else f"[{row}]")
    assert "holds the key 'answer' twice in one object" in refused(rows, file)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_json_does_not_have_is_named(number: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"prompt": "a", "score": 1}}\n{{"prompt": "b", "score": {number}}}\n')
    assert f"line 2 of {file} holds NaN or a number beyond the range" in refused(rows, file)


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_mark_of_byte_order_are_no_part_of_rows(
    end: str, mark: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(f'{mark}{{"prompt": "a"}}{end}{end}{{"prompt": "\u2028"}}{end}'.encode())
    assert rows(file) == [{"prompt": "a"}, {"prompt": "\u2028"}]
    (held_out,) = read_items(str(file), "test")
    assert held_out in rows(file)


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        (["007", "12"], ["007", "12"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["nan", "1.5"], ["nan", "1.5"]),
        (["inf", "-inf"], ["inf", "-inf"]),
        (["\u0661\u0662", "3"], ["\u0661\u0662", "3"]),
        (["1e999", "1"], ["1e999", "1"]),
        (["9" * 5000, "1"], ["9" * 5000, "1"]),
        (["9" * 30, "-1"], [int("9" * 30), -1]),
        (["0", " 12"], [0, 12]),
        (["0.50", "-1e3"], [0.5, -1000.0]),
    ],
    ids=lambda one: str(one)[:30],
)
def test_a_field_of_a_table_is_a_number_only_if_it_is_written_as_one(
    fields: list[str], read: list[Any], tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("prompt,answer\n" + "".join(f"p,{field}\n" for field in fields))
    assert [row["answer"] for row in rows(file)] == read


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_pipe, _device])
@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv"])
def test_a_pipe_or_a_device_is_no_file_of_rows(make: Any, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"rows{suffix}"
    make(file)
    assert f"cannot read {file} ([Errno 22] a device or a pipe, not a file)" in refused(rows, file)


@pytest.mark.parametrize("make", [_pipe, _device])
def test_a_pipe_or_a_device_is_no_file_of_items_and_dialogues(make: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    make(file)
    assert "task.items: cannot read" in refused(read_items, str(file), "train")
    assert "a device or a pipe, not a file" in refused(read_dialogues, file, ["a"])


def test_a_name_that_no_file_has_is_told_as_that() -> None:
    said = refused(rows, Path("a\0b.jsonl"))
    assert "cannot read a\0b.jsonl ([Errno 22] no file can have this name)" in said


# --- configs and arguments ----------------------------------------------------------------------


@pytest.mark.parametrize("number", ["010", "-017", "0_7", "1:30", "190:20:30", "1:30.5"])
def test_a_number_that_yaml_reads_as_another_is_refused(number: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(f"{HEAD}train: {{episodes: {number}}}\n")
    assert f"line 3: {number} is an octal or sexagesimal number" in refused(load_config, file)
    assert "octal or sexagesimal" in refused(load_config, "quickstart", [f"train.epochs={number}"])


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("0x10", 16), ("1_000", 1000), ("0", 0)])
def test_other_numbers_of_yaml_are_read(text: str, number: int) -> None:
    config = load_config("quickstart", [f"run.seed={text}"])
    assert config.run.seed == number


def test_a_key_of_thousands_of_sections_is_one_line() -> None:
    said = refused(load_config, "quickstart", [".".join("a" * 5000) + "=1"])
    assert said.endswith("...: more than 100 sections; correct the key")


def test_a_config_whose_name_is_too_long_for_a_file_is_one_line() -> None:
    said = refused(load_config, "a" * 5000 + ".yaml")
    assert said.endswith("File name too long; give a .yaml path or a shipped name")
    assert len(said) < 300


# --- the environment, cards and programs --------------------------------------------------------


def test_a_terminal_without_a_character_gets_its_number() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "300"}
    command = [sys.executable, "-m", "colearn", "settings", "evaluation"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"(integer, \u2265 1, default 10)" in done.stdout


def test_the_name_of_a_metric_stays_in_its_cell() -> None:
    assert one_cell("a | b\n\n# Title\x1b[2J") == "a \\| b # Title?[2J"


def test_a_process_that_a_program_leaves_behind_does_not_hold_its_episode(tmp_path: Path) -> None:
    """It is in a session of its own, and has the program's standard error open."""
    code = "import subprocess; left = subprocess.Popen(['sleep', '3600'], start_new_session=True)"
    code += f"; open({str(tmp_path / 'left')!r}, 'w').write(str(left.pid))"
    live = ProgramRun(0, ["one"], "item")
    urls = Endpoints("http://127.0.0.1:9/episodes/0", {"one": "http://127.0.0.1:9"})
    CommandProgram([sys.executable, "-c", code]).start(live, urls)
    live.wait(600)
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)
    assert (live.over, live.ended, live.failure) == (True, True, None)
