"""The table of the papers' claims: its links, commands, verdicts and figures."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from colearn.config import shipped_configs

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "evidence" / "claims.md"
VERDICTS = ("agrees", "contradicts", "not shown")
COLUMNS = ("", "paper", "claim", "command", "sizes", "seeds", "difference", "verdict", "page")


def _rows() -> list[dict[str, str]]:
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d+ \|", line)]
    cells = [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]
    return [dict(zip(COLUMNS, row, strict=True)) for row in cells]


ROWS = _rows()


def _linked(row: dict[str, str]) -> list[Path]:
    links = re.findall(r"\]\(([^)#]+)", row["page"])
    return [(PAGE.parent / link).resolve() for link in links]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[""])
def test_a_claim_has_one_of_three_verdicts_and_a_page_that_exists(row: dict[str, str]) -> None:
    assert row["verdict"] in VERDICTS
    pages = _linked(row)
    assert pages
    assert all(page.is_file() for page in pages)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[""])
def test_the_config_or_script_of_a_claims_command_exists(row: dict[str, str]) -> None:
    (command,) = re.findall(r"`([^`]+)`", row["command"])
    program, *words = shlex.split(command)
    if program == "colearn":
        assert words[0] in ("compare", "train")
        assert words[1] in shipped_configs()
    else:
        assert program == "python"
        assert (ROOT / words[0]).is_file()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[""])
def test_the_intervals_of_a_claim_stand_on_its_page(row: dict[str, str]) -> None:
    text = " ".join(" ".join(page.read_text().split()) for page in _linked(row))
    intervals = re.findall(r"[-+]?[\d.]+ \[[^]]+\]", row["difference"])
    assert [interval for interval in intervals if interval not in text] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[""])
def test_a_verdict_rests_on_more_than_one_seed(row: dict[str, str]) -> None:
    seeds = [int(number) for number in re.findall(r"\d+", row["seeds"])]
    if row["verdict"] != "not shown" and "exact" not in row["seeds"]:
        assert seeds
        assert min(seeds) >= 3


def test_the_summary_counts_the_verdicts_of_the_table() -> None:
    counts = [sum(row["verdict"] == verdict for row in ROWS) for verdict in VERDICTS]
    agrees, contradicts, not_shown = counts
    assert (
        f"{len(ROWS)} claims: {agrees} agree, {contradicts} contradict, {not_shown} are not shown"
        in PAGE.read_text()
    )
    assert [int(row[""]) for row in ROWS] == list(range(1, len(ROWS) + 1))
