"""Plans comparisons: one run, with a separate resolved config, for every algorithm and seed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colearn import registry
from colearn.config import (
    Config,
    ResolvedRun,
    build_task,
    known_settings,
    load_config,
    recorded_settings,
    resolve,
    with_critic_baseline,
)
from colearn.config.elsewhere import remedy
from colearn.contract import Algorithm, DecPOMDP
from colearn.errors import ConfigError, nearest
from colearn.runs.record import ComparisonFolder, RunFolder, RunRecord

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")
_SHARED = {"algorithm", "evaluation", "run", "train"}
"""Sections in which an entry of `compare.algorithms` may change only single keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A planned run of one algorithm with one seed."""

    algorithm: str
    """Label: a registered name, or any name whose settings contain `algorithm.name`."""
    config: Config
    budget: int
    """Budget in environment steps; 0 if the algorithm does not learn."""
    metric: str = "return"
    """Name of the headline metric."""

    @property
    def name(self) -> str:
        return f"{self.algorithm}-s{self.config.run.seed}"

    def extends(self, record: RunRecord) -> bool:
        """Whether the planned budget exceeds the number of steps of a recorded run that is finished
        and that no callback stopped."""
        iterations = self.config.train.iterations
        ended = iterations is not None and record.iterations >= iterations
        return record.environment_steps < self.budget and not ended and record.stopped is None

    def folder(self, out: Path) -> RunFolder:
        return ComparisonFolder(out).run(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The runs of a comparison, ordered by seed, so that all algorithms advance together."""

    config: Config
    runs: tuple[PlannedRun, ...]
    resolved: Mapping[str, ResolvedRun]
    """The resolved configs by algorithm."""

    @property
    def algorithms(self) -> tuple[str, ...]:
        return tuple(self.resolved)

    @property
    def seeds(self) -> int:
        """Number of different seeds."""
        return len({run.config.run.seed for run in self.runs})

    @property
    def shared(self) -> dict[str, Any]:
        """Settings that all runs share: the config without the budget, algorithms and seeds."""
        settings = _unseeded(self.config)
        del settings["algorithm"], settings["compare"], settings["train"]["environment_steps"]
        return settings

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings of each algorithm's runs, by label, without seeds."""
        return {run.algorithm: _unseeded(run.config) for run in self.runs}


def _unseeded(config: Config) -> dict[str, Any]:
    settings = recorded_settings(config)
    del settings["run"]["seed"]
    return settings


def make_plan(config: Config, algorithms: Sequence[str] | None = None) -> Plan:
    """Resolve and check the config of every run before the first run starts.

    `config.compare.algorithms` maps a name to dotted overrides. To compare two variants of one
    algorithm, use two names whose overrides set the same `algorithm.name`. Settings in `algorithm`
    apply to every algorithm that has them. `algorithms` selects some of the names, and may add
    algorithms without overrides. Errors: ConfigError naming the algorithm and the key.
    """
    seeds = config.compare.seeds
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"compare.seeds: give one or more different seeds, got {list(seeds)}")
    entries = _entries(config)
    chosen = tuple(entries) if algorithms is None else tuple(dict.fromkeys(algorithms))
    if not chosen:
        raise ConfigError("algorithms: name one or more to compare")
    # all of them: what only a name that is left out has is no mistake
    entries = {**entries, **{label: entries.get(label, {}) for label in chosen}}
    for label in entries:
        if not _LABEL.fullmatch(label):
            raise ConfigError(
                f"compare.algorithms: '{label}' names a folder; use at most 100 letters, digits, "
                "_ . + -"
            )
    folded: dict[str, str] = {}
    for label in chosen:
        earlier = folded.setdefault(label.casefold(), label)
        if earlier != label:
            raise ConfigError(
                f"compare.algorithms: '{earlier}' and '{label}' differ in case only and would "
                "share a folder on some file systems; rename one"
            )
    known = _known_by_entry(config, entries)
    configs = {label: _resolve(config, label, entries, known) for label in chosen}
    resolved = _resolved(configs)
    configs = {
        label: with_critic_baseline(labelled, resolved[label].parts)
        for label, labelled in configs.items()
    }
    return Plan(
        config=config,
        runs=tuple(
            PlannedRun(
                algorithm=label,
                config=_seeded(labelled, seed),
                budget=resolved[label].budget,
                metric=resolved[label].headline.metric,
            )
            for seed in seeds
            for label, labelled in configs.items()
        ),
        resolved=resolved,
    )


def _resolved(configs: Mapping[str, Config]) -> dict[str, ResolvedRun]:
    """Resolve each config; configs with the same task share one task object and its data."""
    tasks: dict[str, DecPOMDP[Any, Any]] = {}
    resolved = {}
    for label, config in configs.items():
        played = config.model_dump(mode="json", include={"task", "wrapper"})
        key = json.dumps(played, sort_keys=True)
        if key not in tasks:
            tasks[key] = build_task(config)
        resolved[label] = resolve(config, task=tasks[key])
    return resolved


def config_of(config: Config, label: str) -> Config:
    """The config of one algorithm of a comparison, with its dotted settings applied.

    label: an entry of `compare.algorithms`, or the name or `module:Class` of another algorithm, for
    which `compare.algorithms` has no settings. `config.run.seed` is kept. Errors: ConfigError for
    an unknown label or an invalid setting.
    """
    known = {*config.compare.algorithms, *registry.names("algorithms")}
    if label not in known and ":" not in label:
        raise ConfigError(f"algorithm: unknown algorithm '{label}'; {nearest(label, known)}")
    entries = {**_entries(config), label: config.compare.algorithms.get(label, {})}
    return _resolve(config, label, entries, _known_by_entry(config, entries))


def _entries(config: Config) -> Mapping[str, Mapping[str, Any]]:
    """The dotted settings of each algorithm, by label.

    Errors: ConfigError for a setting that would replace a whole section, and for an algorithm under
    the name of another one.
    """
    names = set(registry.names("algorithms"))
    for label, overrides in config.compare.algorithms.items():
        named = overrides.get("algorithm.name", label)
        if named != label and {named, label} <= names:
            raise ConfigError(
                f"compare.algorithms.{label}: is the name of an algorithm, and algorithm.name is "
                f"{named}; give the entry another name"
            )
        for section in _SHARED & overrides.keys():
            key = next(iter(_section(overrides[section])), "KEY")
            raise ConfigError(
                f"compare.algorithms.{label}: {section} would replace that whole section; write "
                f"dotted keys such as {section}.{key}"
            )
    return config.compare.algorithms or {config.algorithm.name: {}}


def _known(config: Config, name: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that an algorithm and the parts of its runs have."""
    sections = config.algorithm.settings.items()
    chosen = {key: named for key, value in sections if (named := _part(value))}
    for key, value in overrides.items():
        algorithm, *path = key.split(".")
        if algorithm == "algorithm" and path[1:] == ["name"]:
            chosen[path[0]] = str(value)
        elif algorithm == "algorithm" and len(path) == 1 and (named := _part(value)):
            chosen[path[0]] = named
    if registry.instance(name, "compare.algorithms", Algorithm) is not None:
        return {}  # what an object is set to is in it
    cls = registry.algorithm_class(name)
    try:
        return known_settings(cls, chosen)
    except ConfigError as error:
        raise ConfigError(f"algorithm.{error}") from None


def _part(value: Any) -> str | None:
    """Returns the name of a part, given as a section or as a plain name; returns None for values
    that do not name a part."""
    if isinstance(value, str):
        return value
    name = _section(value).get("name")
    return None if name is None else str(name)


def _section(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _kept(settings: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the given settings without those that the algorithm and its parts lack."""
    kept_settings: dict[str, Any] = {}
    for key, value in settings.items():
        if known.get(key) is not None and isinstance(value, Mapping):
            if below := _kept(value, known[key]):
                kept_settings[key] = below
        elif key in known:
            kept_settings[key] = value
    return kept_settings


def _check_known(settings: Mapping[str, Any], known: Sequence[Mapping[str, Any]], at: str) -> None:
    """Errors: ConfigError for a setting that no algorithm of the comparison has."""
    for key, value in settings.items():
        if not any(key in of_algorithm for of_algorithm in known):
            all_names = {setting for of_algorithm in known for setting in of_algorithm}
            raise ConfigError(f"{at}.{key}: unknown setting; {remedy(key, all_names)}")
        below = [of_algorithm[key] for of_algorithm in known if of_algorithm.get(key)]
        if below and isinstance(value, Mapping):
            _check_known(value, below, f"{at}.{key}")


def _known_by_entry(
    config: Config, entries: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Errors: ConfigError for a setting that no algorithm of the comparison has."""
    known = {
        entry: _known(config, _name(entry, overrides), overrides)
        for entry, overrides in entries.items()
    }
    _check_known(config.algorithm.settings, tuple(known.values()), "algorithm")
    return known


def _name(entry: str, overrides: Mapping[str, Any]) -> str:
    return str(overrides.get("algorithm.name", entry))


def _resolve(
    config: Config,
    label: str,
    entries: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, Mapping[str, Any]],
) -> Config:
    overrides = entries[label]
    for key in overrides:
        if key == "run.seed" or key.split(".")[0] == "compare":
            raise ConfigError(
                f"compare.algorithms.{label}: {key} cannot differ by algorithm; set it in compare"
            )
    data = config.model_dump(mode="json", exclude={"compare"})
    data["algorithm"] = {
        "name": _name(label, overrides),
        **_kept(config.algorithm.settings, known[label]),
    }
    try:
        return load_config(data, overrides)
    except ConfigError as error:
        raise ConfigError(f"compare.algorithms.{label}: {error}") from None


def _seeded(config: Config, seed: int) -> Config:
    return config.model_copy(update={"run": config.run.model_copy(update={"seed": seed})})
