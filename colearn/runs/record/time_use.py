"""Computes the seconds per generator and model in an iteration, and names the bottleneck."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from colearn.contract.timeline import BusyTime

PREFIX = "seconds/"
IDLE, OVERLAP = f"{PREFIX}idle", f"{PREFIX}overlap"
_VERBS = {"generate": "generates", "transfer": "receives weights", "update": "updates"}
_KINDS = (*_VERBS, "wait")


def time_use(spans: Sequence[BusyTime], names: Iterable[str], seconds: float) -> dict[str, float]:
    """Returns metrics of an iteration that took `seconds`. For each generator or model in `names`,
    the metrics contain the seconds spent on each activity and the seconds spent waiting. For the
    iteration, they contain the seconds in which no generator or model worked, and the seconds in
    which at least two worked."""
    metrics: dict[str, float] = {}
    for name in names:
        own_spans = [span for span in spans if span.who == name]
        for activity in dict.fromkeys(span.activity for span in own_spans):
            of_kind = [span for span in own_spans if span.activity == activity]
            metrics[f"{PREFIX}{activity}/{name}"] = _covered(of_kind)[0]
        metrics[f"{PREFIX}wait/{name}"] = seconds - _covered(own_spans)[0]
    busy, overlap = _covered(spans)
    return metrics | {IDLE: seconds - busy, OVERLAP: overlap}


def _covered(spans: Sequence[BusyTime]) -> tuple[float, float]:
    """Returns the seconds in which at least one generator or model worked, and the seconds in which
    at least two worked."""
    edges = sorted([(s.start, 1, s.who) for s in spans] + [(s.end, -1, s.who) for s in spans])
    running: dict[str, int] = {}
    busy = overlap = last = 0.0
    for at, change, name in edges:
        working = sum(count > 0 for count in running.values())
        busy += (at - last) * (working >= 1)
        overlap += (at - last) * (working >= 2)
        running[name] = running.get(name, 0) + change
        last = at
    return busy, overlap


def shares(updates: Iterable[Mapping[str, float | None]]) -> dict[str, float]:
    """Returns shares of the total time of a run's iterations. The keys are `ACTIVITY/NAME`, `idle`
    and `overlap`. Empty for a run without a timeline."""
    sums: dict[str, float] = {}
    total = 0.0
    for metrics in updates:
        durations = [metrics.get(f"{PREFIX}{part}") for part in ("rollout", "update")]
        if IDLE not in metrics or None in durations:
            continue
        total += sum(value for value in durations if value is not None)
        for key, value in metrics.items():
            kind, _, name = key.removeprefix(PREFIX).partition("/")
            if key in (IDLE, OVERLAP) or (key.startswith(PREFIX) and name and kind in _KINDS):
                sums[key.removeprefix(PREFIX)] = sums.get(key.removeprefix(PREFIX), 0.0) + (
                    value or 0.0
                )
    return {key: value / total for key, value in sums.items()} if total else {}


def bottleneck(parts: Mapping[str, float]) -> str:
    """Returns one line on the result of `shares`. The line names the activity with the largest
    share of an iteration, and the other activities with their shares. Empty without a timeline."""
    if not parts:
        return ""
    work = {key: value for key, value in parts.items() if key.partition("/")[0] in _VERBS}
    texts = {key: f"{_activity(key)} {value:.0%}" for key, value in work.items()}
    texts["idle"] = f"task steps and bookkeeping {parts['idle']:.0%}"
    order = sorted(texts, key=lambda key: -parts[key])
    first, *rest = (texts[key] for key in order if key == order[0] or parts[key] >= 0.005)
    others = f"; {', '.join(rest)}" if rest else ""
    return f"bottleneck: {first} of an iteration{others}; {parts['overlap']:.0%} overlaps"


def _activity(key: str) -> str:
    activity, _, name = key.partition("/")
    return f"{name} {_VERBS[activity]}"
