"""Builds the tables of a report from its summary."""

from __future__ import annotations

from colearn.runs.over_seeds import MeanEstimate

from .collapses import collapse_table
from .finding import differing, improvements
from .result_table import ResultCell, ResultTable, estimate_cell, numbers_of
from .show import show_number
from .stopped import stopped_table
from .summary import OBJECTIVE, AlgorithmSummary, Change, Summary, is_objective

_OWN_COLUMNS = ("response_seconds", "tokens_per_turn")
_OVERHEAD = {
    "iterations": "Iterations",
    "episodes": "Episodes rolled out",
    "samples_per_episode": "Samples per episode",
    "samples": "Samples (joint actions)",
    "critic_samples": "Samples that a given critic was trained on before",
    "generated_tokens": "Generated tokens",
    "updates": "Policy updates",
    "environment_steps": "Environment steps at the last evaluation",
    "budget": "Budget of environment steps",
    "runs": "Finished runs",
    "counted": "Runs that count as seeds",
    "wall_seconds": "Duration (s)",
    "peak_memory_gb": "Peak memory (GB)",
}


def tables(summary: Summary) -> list[ResultTable]:
    """Returns the tables of performance, collapsed runs, the critics' explained variance, all other
    metrics, the training objective, overhead, and time use. With several algorithms and seeds,
    there is also a table of the probability that one algorithm improves over another."""
    all_tables = [
        _performance(summary),
        collapse_table({k: a.collapses for k, a in summary.algorithms.items()}),
        stopped_table({k: a.stopped for k, a in summary.algorithms.items()}),
        _critics(summary),
        _other_metrics(summary),
        _objective(summary),
        _overhead(summary),
        _time_use(summary),
    ]
    if summary.pairs and _several_seeds(summary):
        all_tables.append(_improvement(summary))
    return [table for table in all_tables if table.rows]


def _performance(summary: Summary) -> ResultTable:
    algorithms, judged = summary.algorithms, summary.compared.headline
    title = column_title(judged.metric)
    columns: dict[str, list[MeanEstimate | None]] = {
        f"{title} before": [_metric(a, judged.metric).first for a in algorithms.values()],
        f"{title} after": [_metric(a, judged.metric).last for a in algorithms.values()],
        "Response time (s)": [_metric(a, "response_seconds").last for a in algorithms.values()],
        "Tokens per agent and turn": [
            _metric(a, "tokens_per_turn").last for a in algorithms.values()
        ],
    }
    best = {
        f"{title} after": _best(columns[f"{title} after"], judged.sign),
        "Response time (s)": _best(columns["Response time (s)"], -1),
        "Tokens per agent and turn": _best(columns["Tokens per agent and turn"], -1),
    }
    gains = [_metric(algorithm, judged.metric).gain for algorithm in algorithms.values()]
    counted = f" {improvements(gains, judged)}." if len(gains) > 1 else ""
    return ResultTable(
        name="performance",
        title="Performance, response time and cost",
        note=f"{_means(summary)}, at the first evaluation (before) and "
        "the last (after, and time and cost). Response time is that of a turn's slowest agent. "
        f"Of {judged.metric}, {judged.better} is better. "
        f"Bold: best mean, which need not differ from the others.{counted}",
        columns=tuple(columns),
        rows=tuple(
            (
                label,
                tuple(
                    estimate_cell(values[row], len(algorithm.seeds), row in best.get(name, ()))
                    for name, values in columns.items()
                ),
            )
            for row, (label, algorithm) in enumerate(algorithms.items())
        ),
    )


def _means(summary: Summary) -> str:
    """Describes what a table's cells show: means over seeds, or the values of single runs."""
    if _several_seeds(summary):
        return "Means over seeds with 95% intervals, cut at the known bounds of a quantity"
    return "Values of one run, so without intervals"


def _several_seeds(summary: Summary) -> bool:
    """Whether some algorithm has at least two seeds. If every algorithm had one run, every
    probability would be 0, 0.5 or 1."""
    return any(len(algorithm.seeds) > 1 for algorithm in summary.algorithms.values())


def _activity(key: str) -> str:
    """The row title for a key `ACTIVITY/NAME` of the time use."""
    activity, _, name = key.partition("/")
    return f"idle {name}" if activity == "wait" else f"{activity} {name}".rstrip()


def _other_metrics(summary: Summary) -> ResultTable:
    algorithms = summary.algorithms
    names = dict.fromkeys(
        name
        for algorithm in algorithms.values()
        for name in algorithm.metrics
        if name not in (summary.compared.headline.metric, *_OWN_COLUMNS) and not is_objective(name)
    )
    zero = [name for name in names if _always_zero(summary, name)]
    note = (
        f"{_means(summary)}, at the first evaluation (before) and "
        "the last (after). The task's page states whether higher or lower is better."
    )
    if zero:
        note += f" Zero in every evaluation: {', '.join(zero)}."
    return ResultTable(
        name="task_metrics",
        title="Other metrics",
        note=note,
        columns=tuple(algorithms),
        rows=tuple(
            (
                f"{name} {label}",
                tuple(
                    estimate_cell(
                        getattr(_metric(algorithm, name), attribute), len(algorithm.seeds)
                    )
                    for algorithm in algorithms.values()
                ),
            )
            for name in names
            if name not in zero
            for label, attribute in (("before", "first"), ("after", "last"))
        ),
    )


def _always_zero(summary: Summary, name: str) -> bool:
    """Whether a metric is 0 in every evaluation that reports it."""
    key = f"metrics.{name}"
    values = {value for run in summary.runs for value in run.evaluations.get(key, ())}
    return values - {None} == {0}


def _objective(summary: Summary) -> ResultTable:
    changes = {k: _metric(a, OBJECTIVE) for k, a in summary.algorithms.items()}
    return ResultTable(
        name="objective",
        title="Training objective",
        note="What each algorithm maximises: the return as its credit assigns the reward, "
        "mean over agents. Rows with different credit are not comparable.",
        columns=("Objective before", "Objective after"),
        rows=tuple(
            (
                label,
                tuple(
                    estimate_cell(value, len(summary.algorithms[label].seeds))
                    for value in (change.first, change.last)
                ),
            )
            for label, change in changes.items()
            if change.last is not None
        ),
    )


def _critics(summary: Summary) -> ResultTable:
    rows = []
    for label, algorithm in summary.algorithms.items():
        seeds = len(algorithm.seeds)
        critic = algorithm.critic
        if critic is None:
            continue
        noise = ResultCell(text=show_number(critic.noise), numbers=(critic.noise, None, None))
        if not critic.turns:
            rows.append((label, (*(ResultCell(text="-") for _ in range(4)), noise)))
        for turn in critic.turns:
            values = (turn.explained, turn.r2, turn.item_mean)
            cells = [estimate_cell(value, seeds, False) for value in values]
            rows.append((f"{label}, turn {turn.turn}", (*cells, _ceiling(turn.ceiling), noise)))
    return ResultTable(
        name="critics",
        title="What the critics explain",
        note="Shares of the variance of single returns, in the second half of the updates. "
        f"{_means(summary)}. R^2 counts a constant bias, explained variance does not. "
        "The means are running means of returns by item and turn, without the episode's own. The "
        "next column is what a value of the joint history can explain, from returns after equal "
        "joint histories of one update (items that come up twice, trees), with its 95% interval. "
        "The noise is that of an actor's gradient in a step, relative to the gradient.",
        columns=(
            "Explained variance",
            "R^2",
            "Means by item and turn",
            "Can be explained",
            "Gradient noise",
        ),
        rows=tuple(rows),
    )


def _ceiling(ceiling: tuple[float, float, float] | None) -> ResultCell:
    if ceiling is None:
        return ResultCell(text="-")
    share, low, high = map(show_number, ceiling)
    return ResultCell(text=share, interval=f"[{low}, {high}]", numbers=ceiling)


def _overhead(summary: Summary) -> ResultTable:
    names = (name for algorithm in summary.algorithms.values() for name in algorithm.overhead)
    services = {name: name.capitalize() for name in names if name not in _OVERHEAD}
    return ResultTable(
        name="overhead",
        title="Training overhead",
        note=f"{_means(summary)}, per run. A sample is a joint action.",
        columns=tuple(summary.algorithms),
        rows=tuple(
            (
                title,
                tuple(
                    _count(algorithm.overhead.get(key), len(algorithm.seeds))
                    for algorithm in summary.algorithms.values()
                ),
            )
            for key, title in {**_OVERHEAD, **services}.items()
            if any(a.overhead.get(key) is not None for a in summary.algorithms.values())
        ),
    )


def _time_use(summary: Summary) -> ResultTable:
    algorithms = summary.algorithms
    keys = dict.fromkeys(key for a in algorithms.values() for key in a.time_use)
    lines = [f"{name}: {a.bottleneck}." for name, a in algorithms.items() if a.bottleneck]

    def cell(algorithm: AlgorithmSummary, key: str) -> ResultCell:
        share = algorithm.time_use.get(key)
        if share is None:
            return ResultCell(text="-")
        return ResultCell(text=f"{share.mean:.0%}", numbers=numbers_of(share))

    return ResultTable(
        name="time_use",
        title="Where the time went",
        note="Shares of the time of an iteration, without evaluations. The shares exceed 100% in "
        "total if models work at the same time. A model is idle while others generate or update. "
        + " ".join(lines),
        columns=tuple(algorithms),
        rows=tuple(
            (_activity(key), tuple(cell(a, key) for a in algorithms.values()))
            for key in sorted(keys)
        ),
    )


def _improvement(summary: Summary) -> ResultTable:
    judged = summary.compared.headline
    pairs = {(pair.x, pair.y): pair for pair in summary.pairs}
    labels = tuple(dict.fromkeys(pair.x for pair in summary.pairs))

    def cell(x: str, y: str) -> ResultCell:
        if x == y:
            return ResultCell(text="", blank=True)
        pair = pairs[x, y]
        return estimate_cell(pair.probability, pair.probability.seeds, pair.differs)

    note = (
        f"The probability that a run of the row's algorithm ends with a {judged.better} "
        f"{judged.metric} than one of "
        "the column's (ties count half), with Brunner and Munzel's 95% interval. Bold: the exact "
        f"rank test tells the pair apart at 95%. {differing(summary.pairs)}."
    )
    if not all(pair.enough_seeds for pair in summary.pairs):
        note += (
            " Pairs with too few seeds (fewer than four each) are never bold: even fully separated "
            "results would come about by chance more than one time in twenty."
        )
    return ResultTable(
        name="improvement",
        title="Probability of improvement",
        note=note,
        columns=tuple(f"over {label}" for label in labels),
        rows=tuple((x, tuple(cell(x, y) for y in labels)) for x in labels),
    )


def column_title(metric: str) -> str:
    """Column title of a metric; a task's metrics keep their names."""
    return "Return" if metric == "return" else metric


def _metric(algorithm: AlgorithmSummary, name: str) -> Change:
    return algorithm.metrics.get(name, Change(first=None, last=None, gain=None))


def _count(value: MeanEstimate | None, seeds: int) -> ResultCell:
    if value is not None and value.seeds == seeds and value.low == value.high:
        return ResultCell(text=show_number(value.mean), numbers=numbers_of(value))
    return estimate_cell(value, seeds)


def _best(values: list[MeanEstimate | None], sign: int) -> set[int]:
    means = {row: value.mean for row, value in enumerate(values) if value is not None}
    if len(means) < 2:
        return set()
    top = max(sign * mean for mean in means.values())
    text = show_number(sign * top)
    return {row for row, mean in means.items() if show_number(mean) == text}
