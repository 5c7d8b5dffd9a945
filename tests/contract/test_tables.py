"""Every command of docs/papers/tables.md resolves to its runs, without weights or a hub."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer.main

from colearn.config import Config, is_suite, load_config, load_suite
from colearn.entry.cli import app
from colearn.runs.comparison.plan import Plan, make_plan
from colearn.runs.comparison.suite import suite_config
from colearn.tasks.coder_tester import hub as coder_hub
from colearn.tasks.coop_humaneval import hub as humaneval_hub
from colearn.tasks.math_duo import data as math_data
from colearn.tasks.search import hub as search_hub

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers" / "tables.md"
WRITING = ("hub",)
HUB: Mapping[str, Sequence[str]] = {
    "coder_tester": tuple(coder_hub.HUB_SETS),
    "coop_humaneval": tuple(humaneval_hub.HUB_SETS),
    "code_loop": tuple(coder_hub.HUB_SETS),
    "math_duo": tuple(math_data.HUB_SETS),
    "solver": tuple(math_data.HUB_SETS),
    "tldr": WRITING,
    "arxiv": WRITING,
    **{f"search_{flow}": tuple(search_hub.DATA_SETS) for flow in ("mhgpo", "parallel")},
    **{f"search_{flow}": tuple(search_hub.DATA_SETS) for flow in ("extract", "loop")},
}
"""Data sets that a task reads from the hub, by the name that `task.data` gives them."""


@dataclass(frozen=True)
class Row:
    """One `colearn` command of the page."""

    line: int
    section: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass
class Parsed:
    """The arguments of a command that decide what is run."""

    name: str
    sets: list[str] = field(default_factory=list)
    algorithms: list[str] | None = None
    out: str | None = None
    together: str | None = None
    metric: str | None = None


def rows(program: str) -> Iterator[Row]:
    """The commands of `program` that the page names, without its name."""
    section = ""
    for number, line in enumerate(PAGE.read_text().splitlines(), start=1):
        if line.startswith("## "):
            section = line.removeprefix("## ")
        for command in re.findall(rf"`{program} ([^`]+)`", line):
            yield Row(number, section, tuple(shlex.split(command)))


ROWS = list(rows("colearn"))


def parsed(row: Row) -> Parsed:
    """As the command line reads it. Errors: typer's, for an option that there is not."""
    command = typer.main.get_group(app).commands[row.words[0]]
    with command.make_context(row.words[0], list(row.words[1:])) as context:
        given = context.params
    chosen = [name for names in given.get("algorithms") or () for name in names.split(",")]
    name = given.get("config") or given.get("folder") or given.get("run")
    out = given.get("out")
    return Parsed(
        name=str(name),
        sets=list(given.get("sets") or ()),
        algorithms=chosen or None,
        out=str(out) if out else None,
        together=given.get("together"),
        metric=given.get("metric"),
    )


def offline(config: Config, seen: set[str]) -> Config:
    """The config with packaged data in place of the hub's, whose names are noted in `seen`."""
    task = config.task
    known = HUB.get(task.name, ())
    data = {key: str(task.settings[key]) for key in ("data", "test_data") if key in task.settings}
    hub = {key for key, value in data.items() if value in known}
    seen.update(data[key] for key in hub)
    if not hub:
        return config
    here = "generated" if task.name in ("math_duo", "solver") else "packaged"
    changes = {"task.data": here, "task.test_data": None, "task.corpus": None}
    own = {key: v for key, v in changes.items() if key.removeprefix("task.") in task.settings}
    return load_config(config.model_dump(mode="json"), own)


def configs(command: Parsed) -> dict[str, tuple[Config, list[str] | None]]:
    """The config of each comparison of the command and its rows, by the folder under its `--out`;
    '.' if it is no suite."""
    if not is_suite(command.name):
        return {".": (load_config(command.name, command.sets), command.algorithms)}
    suite = load_suite(command.name, command.sets)
    chosen = command.algorithms or list(suite.rows)
    loaded = {task: suite_config(suite, name) for task, name in suite.configs.items()}
    return {
        task: (config, [label for label in chosen if label in config.compare.algorithms])
        for task, config in loaded.items()
    }


@cache
def compared(section: str, folder: str) -> Plan:
    """The comparison that a command of the section writes into the folder."""
    for row in ROWS:
        command = parsed(row)
        if row.section != section or command.out is None or row.words[0] != "compare":
            continue
        if Path(folder).is_relative_to(command.out):
            task = str(Path(folder).relative_to(command.out))
            if task in (known := configs(command)):
                config, labels = known[task]
                return make_plan(offline(config, set()), labels)
    raise AssertionError(f"no command of {section} writes {folder}")


PROGRAMS = list(rows("python"))
"""The benchmarks that the page names, with their arguments."""


@cache
def metrics_of(section: str, folder: str) -> set[str]:
    """The metrics of the comparison's tasks, of which most rows play the same."""
    rows = compared(section, folder).resolved.values()
    tasks = {str(resolved.config.task): resolved.task for resolved in rows}
    rng = np.random.default_rng(0)
    return {
        name
        for task in tasks.values()
        for name in task.metrics(task.reset(task.items("test")[0], rng))
    }


def test_the_page_has_a_command_for_each_paper() -> None:
    papers = ("CoLLM", "Stronger-MAS", "MHGPO", "UnityMAS-O", "MARSHAL")
    assert {row.section for row in ROWS} == set(papers)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.words[0] in ("compare", "train")], ids=str
)
def test_what_a_row_trains_resolves(row: Row) -> None:
    known = configs(parsed(row))
    assert known
    for config, labels in known.values():
        assert make_plan(offline(config, set()), labels).runs


@pytest.mark.parametrize("row", [row for row in ROWS if row.words[0] == "study"], ids=str)
def test_what_a_row_studies_is_compared_above_it(row: Row) -> None:
    command = parsed(row)
    plan = compared(row.section, command.name)
    assert command.together in plan.algorithms
    assert command.metric in metrics_of(row.section, command.name)


@pytest.mark.parametrize("row", [row for row in ROWS if row.words[0] == "evaluate"], ids=str)
def test_what_a_row_evaluates_is_trained_above_it(row: Row) -> None:
    command = parsed(row)
    folder, _, name = command.name.rpartition("/runs/")
    plan = compared(row.section, folder)
    run = next(run for run in plan.runs if run.name == name)
    seen: set[str] = set()
    changed = offline(load_config(run.config.model_dump(mode="json"), command.sets), seen)
    assert make_plan(changed).runs
    asked = {one.partition("=")[2] for one in command.sets if one.startswith("task.data=")}
    assert asked <= seen


@pytest.mark.parametrize("row", PROGRAMS, ids=str)
def test_a_program_that_a_row_names_is_there(row: Row) -> None:
    assert (ROOT / row.words[0]).is_file()


@pytest.mark.parametrize("row", [row for row in PROGRAMS if "--metrics" in row.words], ids=str)
def test_a_curve_that_a_row_prints_is_of_runs_above_it(row: Row) -> None:
    folder, metrics = row.words[1], row.words[row.words.index("--metrics") + 1 :]
    plan = compared(row.section, folder)
    groups = ("similarity", "same_prompt")
    agents = {agent for one in plan.resolved.values() for agent in one.task.agents}
    known = (
        metrics_of(row.section, folder)
        | {"objective"}
        | {f"{a}/{group}" for a in agents for group in groups}
    )
    assert metrics and set(metrics) <= known
