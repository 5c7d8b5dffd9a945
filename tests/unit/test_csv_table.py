"""Which CSV files are read, and what: RFC 4180 decides. Where Python's parser would take something
else from a file than what it seems to say, one line refuses it."""

from __future__ import annotations

import csv
import io

import pytest

from colearn.text.csv_table import read_csv


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n"x, y","say ""no"""\n', [["x, y", 'say "no"']]),
        ('a,b\r\n"1\r\n2",3\r\n', [["1\r\n2", "3"]]),
        ('a,b\n"",""""\n', [["", '"']]),
        ('a,b\n1,"""x"""', [["1", '"x"']]),
    ],
)
def test_quotes_are_read_as_in_rfc_4180(text: str, rows: list[list[str]]) -> None:
    assert [row for _, row in read_csv(text).rows] == rows


@pytest.mark.parametrize(
    ("text", "line", "otherwise"),
    [
        ('a,b\nsay "yes, or no"\n', 2, ['say "yes', ' or no"']),
        ('a,b\n"1\n2",3\n "x, y"\n', 4, [' "x', ' y"']),
        ('a\n5" pipe\n', 2, ['5" pipe']),
        ('a,b\r\n"1\u2028",x"\r\n', 2, ["1\u2028", 'x"']),
    ],
)
def test_quotes_in_a_field_that_does_not_begin_with_one_are_refused(
    text: str, line: int, otherwise: list[str]
) -> None:
    """`otherwise` is what Python's strict parser takes from the line."""
    assert list(csv.reader(io.StringIO(text, newline=""), strict=True))[-1] == otherwise
    with pytest.raises(ValueError, match=f"^has quotes in line {line} within a field") as caught:
        read_csv(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ['a,b\n"x"y,1\n', 'a,b\n1,"x\n', 'a,b\n"x" ,1\n'])
def test_text_behind_a_closing_quote_and_an_open_one_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not valid CSV in line \d .*; fix the quotes$"):
        read_csv(text)
