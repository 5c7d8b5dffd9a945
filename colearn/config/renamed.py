"""Maps the old names of renamed settings and metrics to their new names, and writes errors that
give the new name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from colearn.errors import nearest

from .elsewhere import elsewhere

SETTINGS = {
    "anneal": "anneal_fraction",
    "old": "old_logprobs",
    "refresh": "reference_update_every",
    "singles": "ungrouped",
    "trace": "lam",
}
"""Renamed keys of `algorithm.loss`, `algorithm.advantage` and `algorithm.value_loss`."""

PARTS = {"bootstrap": "gae"}
"""Renamed parts, in `algorithm.advantage.name`."""

REPLACED = {
    "batch_agents": "generator: {batch_agents: false}",
    "deepspeed": "learner: {name: deepspeed, config: zero2}",
}
"""Former keys of `run` that were moved to another section."""

THREADS = "threads"
"""Former key of `compare` and of suites, replaced by `run.threads`, which sets the number of
threads for every command."""

METRICS = {
    "behaviour_gap": "logprob_mismatch",
    "moved": "approx_kl",
    "overlong": "truncated",
    "surprise": "nll",
}
"""Renamed metrics: maps the last part of a metric's old name, as in run folders of earlier
versions, to the new name."""


def remedy(key: str, known: Iterable[str]) -> str:
    """Returns the remedy for an unknown key: the new name of a renamed key, the section to which
    the key belongs, colearn's counterpart of a TRL setting, or otherwise the nearest key."""
    known = list(known)
    above = "each." if "sizes" in known else ""  # in a suite
    new = SETTINGS.get(key)
    if new in known:
        return f"it is {new} now"
    if key in REPLACED and {"learner", "generator"} <= set(known):
        return f"write {REPLACED[key]}"
    if key == THREADS and "workers" in known:
        return f"it is {above}run.threads now"
    return elsewhere(key, above) or nearest(key, known)


def current_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns a recorded config with the current names of settings, with defaults that have changed
    since, and without settings that are errors since."""
    settings = _without_ignored(_with_recorded_baseline(settings))
    compare = settings.get("compare")
    if not isinstance(compare, Mapping) or THREADS not in compare:
        return settings
    run = {THREADS: compare[THREADS], **(settings.get("run") or {})}
    return {**settings, "compare": _without_threads(compare), "run": run}


def _with_recorded_baseline(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns a recorded config with `critic.baseline: none` if it has no baseline. A config is
    recorded with the baseline that the run has, unless `critic.from` determines it; before `item`
    was a default, an empty baseline meant `none`."""
    critic = settings.get("critic")
    if not isinstance(critic, Mapping) or critic.get("from") or critic.get("baseline"):
        return settings
    return {**settings, "critic": {**critic, "baseline": "none"}}


def _without_ignored(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns a recorded config without settings that had no effect: all of a critic on the actors,
    and the clip of the loss of a solved head."""
    critic, algorithm = settings.get("critic"), settings.get("algorithm")
    if not isinstance(critic, Mapping):
        return settings
    if critic.get("share") is not None:
        kept = {key: critic[key] for key in ("share", "baseline") if key in critic}
        return {**settings, "critic": kept}
    if (
        critic.get("head") == "ridge"
        and isinstance(algorithm, Mapping)
        and isinstance(loss := algorithm.get("value_loss"), Mapping)
    ):
        unclipped = {key: value for key, value in loss.items() if key != "clip"}
        return {**settings, "algorithm": {**algorithm, "value_loss": unclipped}}
    return settings


def current_suite(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a recorded suite with the current names of settings."""
    if settings.get(THREADS) is None:
        return _without_threads(settings)
    each = settings.get("each") or {}
    run = {THREADS: settings[THREADS], **(each.get("run") or {})}
    return {**_without_threads(settings), "each": {**each, "run": run}}


def _without_threads(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != THREADS}


def current_metrics(metrics: Any) -> Any:
    """Returns the metrics of a recorded line under their current names.

    If the line has both the old and the new name, the old name is kept, because it is then the name
    of a metric of the task.
    """
    if not isinstance(metrics, Mapping):
        return metrics
    renamed = {}
    for name, value in metrics.items():
        before, _, last = str(name).rpartition("/")
        new = f"{before}/{METRICS.get(last, last)}" if before else METRICS.get(last, last)
        renamed[name if new in metrics else new] = value
    return renamed
