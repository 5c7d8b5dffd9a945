"""The shipped configs against docs/papers/settings.md: what each paper states, and what is taken
where it leaves something open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from offline_configs import offline

from colearn.config import Config, build_algorithm, build_task
from colearn.runs.comparison.plan import config_of
from colearn.tasks.open_spiel.programs import MCTS, Equilibrium

PAGE = Path(__file__).parents[3] / "docs" / "papers" / "settings.md"
PAPERS = ("CoLLM", "Stronger-MAS", "MHGPO", "UnityMAS-O", "MARSHAL")


def lines() -> Iterator[tuple[str, dict[str, str]]]:
    """The heading and the cells of each line of the page's tables."""
    heading, columns = "", []
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells
        elif not line.startswith("|---"):
            yield heading, dict(zip(columns, cells, strict=True))


LINES = list(lines())


class Line(NamedTuple):
    """A line with a key."""

    heading: str
    cells: Mapping[str, str]

    @property
    def key(self) -> str:
        return self.cells["key"]

    def rows(self) -> Iterator[tuple[str, Config]]:
        """Each row of each config of the line, with its name."""
        for config in self.cells["configs"].split(", "):
            for row in self.cells["rows"].split(", "):
                yield f"{config} {row}", row_of(config, row)

    def __str__(self) -> str:
        return f"{self.heading.partition(':')[0]} {self.cells['configs']} {self.key}"


def stated(column: str) -> list[Line]:
    return [Line(*line) for line in LINES if column in line[1] and line[1]["key"]]


@cache
def row_of(config: str, row: str) -> Config:
    whole = offline(f"paper/{config}")
    return whole if row == "file" else config_of(whole, row)


def value_of(config: Config, key: str) -> Any:
    """The value at a dotted key; `*` for what all entries of a section have in common."""
    section, *path = key.split(".")
    if section == "algorithm":
        found: Any = build_algorithm(config).checked_parts()
        for name in path:
            found = getattr(found, name)
        return dict(found) if isinstance(found, Mapping) else found
    if section == "task":
        (name,) = path
        return config.task.settings.get(name, getattr(build_task(config), name, None))
    return _at(config.model_dump(mode="json"), [section, *path])


def _at(found: Any, path: list[str]) -> Any:
    if not path:
        return found
    name, *rest = path
    if name != "*":
        return _at(found[name], rest)
    values = [_at(entry, rest) for entry in found.values()]
    assert values and all(value == values[0] for value in values), values
    return values[0]


@pytest.mark.parametrize("line", stated("value"), ids=str)
def test_a_config_has_the_value_of_the_page(line: Line) -> None:
    values = {name: value_of(row, line.key) for name, row in line.rows()}
    assert values == dict.fromkeys(values, yaml.safe_load(line.cells["value"]))


@pytest.mark.parametrize("line", stated("paper's rate"), ids=str)
def test_rate_times_updates_is_the_papers(line: Line) -> None:
    """Rates have two or three digits, so the product is the paper's within half of the last one."""
    rate, updates = float(line.cells["rate"]), int(line.cells["updates"])
    for _, row in line.rows():
        assert (value_of(row, line.key), row.train.iterations) == (rate, updates)
    paper = float(line.cells["paper's rate"]) * int(line.cells["paper's updates"])
    assert rate * updates == pytest.approx(paper, rel=0.0025)


@pytest.mark.parametrize("task", ["str_build", "house_build"])
def test_minecrafts_methods_have_one_rate_for_a_joint_action(task: str) -> None:
    """C.3: 2.5e-6 (5e-6) for 1 joint action, and for MAGRPO twice that for 2."""
    critic, group = (row_of(task, label) for label in ("collm_cc", "magrpo"))
    by_action = value_of(critic, "models.*.learning_rate") / 4
    assert value_of(group, "models.*.learning_rate") / (2 + 4 + 8 + 16) == pytest.approx(by_action)
    assert by_action == pytest.approx({"str_build": 2.5e-6, "house_build": 5e-6}[task])


def test_every_paper_has_a_list_of_what_it_states_and_of_what_it_leaves_open() -> None:
    count = Counter(heading for heading, _ in LINES)
    for paper in PAPERS:
        assert count[f"{paper}: what the paper states"] >= 3
        assert count[f"{paper}: what the paper leaves open"] >= 5
    assert all(cells.get("section", "-") and cells.get("point", "-") for _, cells in LINES)
    assert all(cells.get("what colearn takes", "-") for _, cells in LINES)


def test_the_fixed_opponents_are_as_the_page_says() -> None:
    assert Equilibrium().iterations == 200
    assert (MCTS().simulations, MCTS().rollouts) == (100, 10)
