"""What the strict YAML reader refuses, in one line that shows the text's line."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.text.yaml_text import parse_yaml

BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "\n".join(
    f"{name}: &{name} [{','.join(['*' + before] * 10)}]"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2024-13-45", "line 2: this value cannot be read as a timestamp: b: 2024-13-45"),
        ("a: 0b_", "line 1: this value cannot be read as a int"),
        ("a: !!int abc", "line 1: this value cannot be read as a int"),
        ("a: " + "9" * 5000, "line 1: this value cannot be read as a int"),
        ("[" * 3000 + "]" * 3000, "line 1: more than 100 brackets inside each other"),
        ("- " * 150 + "x", "line 1: more than 100 sections or lists inside each other"),
        ("a: &x [*x]", "line 1: an alias stands for a section that contains it: a: &x"),
        (BOMB, "line 6: aliases stand for more than 200,000 values"),
        ("a: [1\nb: 2", "line 2: expected ',' or ']', but got ':': b: 2"),
        ("{seed: 1, seed: 2}", "line 1: the key 'seed' appears twice in its section"),
        ("a: [", "line 1"),
        (
            'a: 1\nsize: "\\ud800"',
            "line 2: half of a surrogate pair is no text; write the character itself: "
            'size: "\\ud800"',
        ),
        ('{"\\udfff": 1}', "line 1: half of a surrogate pair is no text"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^not YAML \(") as caught:
        parse_yaml(text)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        (
            "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}",
            {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}},
        ),
        ("[" * 60 + "1" + "]" * 60, None),
    ],
)
def test_aliases_merges_and_modest_nesting_are_read(text: str, value: Any) -> None:
    read = parse_yaml(text)
    if value is not None:
        assert read == value
