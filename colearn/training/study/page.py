"""Writes study.html, which shows cross-play teams, rewards by role and the number of turns over
training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from colearn.errors import ConfigError, nearest
from colearn.runs.over_seeds import MeanEstimate, estimate
from colearn.runs.record import Line, Run, RunFolder
from colearn.runs.record.files import published
from colearn.runs.record.metric_names import of_agent
from colearn.runs.report.curves import small_figure
from colearn.runs.report.page import render
from colearn.runs.report.plots import Plots
from colearn.runs.report.result_table import ResultTable, estimate_cell
from colearn.runs.report.show import show_estimate
from colearn.runs.report.source import Source, read_source
from colearn.runs.report.summarise import bounds, curve
from colearn.runs.report.summary import OBJECTIVE, Curve
from colearn.runs.report.write import write_tables

from .crossing import Crossing, crossings, play_crossing

_NOTE = (
    "Mean over seeds and 95% interval, on held-out items. In a swapped team each seat is played by "
    "the policy that was trained for another one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Content of the page, also written to study.json."""

    metric: str
    teams: dict[str, MeanEstimate | None]
    """Mean of the metric for each assembled team, by the team's title."""
    rewards: dict[str, Curve]
    """Curve of each agent's mean credited training return over environment steps, standardised
    within each run."""
    turns: Curve | None
    """Curve of the number of turns of an evaluation episode over environment steps."""


def write_study(
    folder: str | Path,
    *,
    together: str,
    alone: Mapping[str, str] | None = None,
    metric: str = "solved",
    turns: str = "rounds",
) -> Path:
    """Play the teams of `crossings` for every seed; returns the path of the page.

    together, alone: as for `crossings`.
    metric, turns: metrics of the task.
    Errors: CheckpointError if no run is finished; ConfigError for an unknown label, agent or
    metric.
    """
    source = read_source(Path(folder))
    alone = alone or {}
    by_label = {label: _runs(source, label) for label in (together, *alone.values())}
    runs = by_label[together]
    agents = tuple(runs[0].record.agents)
    for agent in alone:
        if agent not in agents:
            raise ConfigError(f"--alone: no agent '{agent}'; {nearest(agent, agents)}")
    teams = crossings(agents, together, alone)
    study = Study(
        metric=metric,
        teams={team.title: _played(team, by_label, together, metric) for team in teams},
        rewards=rewards_by_agent(runs, agents),
        turns=curve(runs, "environment_steps", lambda run: _evaluated(run, turns), turns),
    )
    content = table(study)
    plots = Plots(written=True)
    html = _html(study, content, source, together, plots)
    with published(source.folder) as out:
        (out / "study.json").write_text(
            json.dumps(asdict(study), indent=1) + "\n", encoding="utf-8"
        )
        write_tables([content], out)
        plots.write(out)
        (out / "study.html").write_text(html, encoding="utf-8")
    return source.folder / "study.html"


def table(study: Study) -> ResultTable:
    """Table of the teams with their metric."""
    rows = tuple((title, (estimate_cell(value),)) for title, value in study.teams.items())
    return ResultTable(
        name="study",
        title="Who was trained with whom",
        note=_NOTE,
        columns=(study.metric,),
        rows=rows,
    )


def rewards_by_agent(runs: Sequence[Run], agents: Sequence[str]) -> dict[str, Curve]:
    """Each agent's objective in training, standardised within each run; omits agents without an
    objective."""
    curves = {}
    for agent in agents:
        reward_curve = curve(runs, "environment_steps", partial(_standardised, agent))
        if reward_curve is not None:
            curves[agent] = reward_curve
    return curves


def _runs(source: Source, label: str) -> list[Run]:
    runs = [run for run in source.runs if run.algorithm == label]
    if not runs:
        labels = source.compared.algorithms
        raise ConfigError(f"no finished run of '{label}' here; {nearest(label, labels)}")
    return runs


def _played(
    team: Crossing, by_label: Mapping[str, Sequence[Run]], base: str, metric: str
) -> MeanEstimate | None:
    folders = {label: {run.seed: run.folder for run in runs} for label, runs in by_label.items()}
    needed = {base, *(member.label for member in team.seats.values())}
    seeds = set.intersection(*(set(folders[label]) for label in needed))
    values = []
    for seed in sorted(seeds):
        runs: dict[str, RunFolder] = {label: folders[label][seed] for label in needed}
        metrics = play_crossing(team, runs, base=base)
        if metric not in metrics:
            raise ConfigError(f"--metric: no metric '{metric}'; {nearest(metric, metrics)}")
        values.append(metrics[metric])
    return estimate(values, **bounds(by_label[base], metric))


def _standardised(agent: str, run: Run) -> list[tuple[Line, float]]:
    """Z-scores of an agent's objective over the updates of one run."""
    values_by_line = ((line, of_agent(line.metrics, OBJECTIVE, agent)) for line in run.updates)
    points = [(line, value) for line, value in values_by_line if value is not None]
    if not points:
        return []
    values = np.array([value for _, value in points])
    spread = float(values.std()) or 1.0
    return [(line, (value - float(values.mean())) / spread) for line, value in points]


def _evaluated(run: Run, metric: str) -> list[tuple[Line, float]]:
    points = ((line, line.metrics.get(metric)) for line in run.evaluations)
    return [(line, value) for line, value in points if value is not None]


def _html(study: Study, content: ResultTable, source: Source, together: str, plots: Plots) -> str:
    figures = [(dict(enumerate(study.rewards.values())), "Standardised return of each role")]
    if study.turns is not None:
        figures.append(({0: study.turns}, "Turns of an episode"))
    teams = "; ".join(f"{title}: {show_estimate(v)}" for title, v in study.teams.items())
    return render(
        "study.html",
        title=f"Roles of {together} on {source.compared.task}",
        headline=f"{study.metric}: {teams}",
        table=content,
        agents=list(study.rewards),
        figures=[
            plots.add(f"study_{caption}", caption, small_figure(curves))
            for curves, caption in figures
        ],
    )
