"""Rows of dialogues: what a line may hold, and what is told of a line that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from colearn.errors import ConfigError
from colearn.training.learners.sft.dialogues import Dialogue, read_dialogues


def row(text: str) -> str:
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": text}]
    return json.dumps({"agent": "ada", "messages": messages}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}", "is no JSON"),
        ('{"messages": ' + "[" * 70 + "]" * 70 + "}", "holds more than 64 lists and objects"),
        (row("a").replace("hello", "\\ud800"), "holds half of a surrogate pair"),
        ("{", "is no JSON"),
    ],
    ids=["deep", "too deep to be kept", "half a pair", "cut"],
)
def test_a_line_that_is_no_row_is_named(line: str, problem: str, tmp_path: Path) -> None:
    data = tmp_path / "dialogues.jsonl"
    data.write_text(f"{row('a')}\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        read_dialogues(data, ["ada"])
    assert str(caught.value).startswith(f"--data: line 2 of {data} {problem}")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("answer", "fields", "problem"),
    [
        ({"weight": 0}, {}, "a message has the weight 0"),
        ({"weight": 0.5}, {}, "a message has the weight 0.5"),
        ({"loss": 0}, {}, "a message has the loss 0"),
        ({"trainable": False}, {}, "a message has the trainable False"),
        ({"loss_scale": 0.5}, {}, "a message has the loss_scale 0.5"),
        ({"step_loss_mask": 0}, {}, "a message has the step_loss_mask 0"),
        ({"loss_mask": [0, 1]}, {}, r"a message has the loss_mask \[0, 1\]"),
        ({}, {"weight": 0.5}, "has the weight 0.5"),
        ({}, {"loss_weight": 2}, "has the loss_weight 2"),
        ({}, {"train": False}, "has the train False"),
        ({"function_call": {"name": "f"}}, {}, "a message has function_call"),
        ({"name": "ben"}, {}, "a message has name, which rows do not hold; write it into content"),
        ({}, {"tools": [{"name": "f"}]}, "has tools, which is not read"),
        ({}, {"chat_template_kwargs": {"enable_thinking": False}}, "has chat_template_kwargs"),
    ],
)
def test_what_trl_and_openai_read_and_rows_do_not_hold_is_one_line(
    answer: dict[str, Any], fields: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    line = json.loads(row("a")) | fields
    line["messages"][1] |= answer
    data = tmp_path / "dialogues.jsonl"
    data.write_text(json.dumps(line))
    with pytest.raises(ConfigError, match=rf"^--data: line 1 of [^\n]*{problem}[^\n]*$"):
        read_dialogues(data, ["ada"])


def test_a_weight_of_one_is_that_of_every_answer(tmp_path: Path) -> None:
    line = json.loads(row("a"))
    line["messages"][1]["weight"] = 1
    data = tmp_path / "dialogues.jsonl"
    data.write_text(json.dumps(line))
    assert read_dialogues(data, ["ada"]) == [Dialogue("ada", (("hello", "a"),))]


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\u2029"])
def test_a_sign_that_ends_lines_of_text_is_part_of_an_answer(sign: str, tmp_path: Path) -> None:
    data = tmp_path / "dialogues.jsonl"
    data.write_text(f"{row(f'one{sign}two')}\r\n", encoding="utf-8", newline="")
    assert read_dialogues(data, ["ada"]) == [Dialogue("ada", (("hello", f"one{sign}two"),))]
