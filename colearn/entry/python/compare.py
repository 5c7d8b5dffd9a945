"""`compare` trains several algorithms with several seeds, from a config or from Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from colearn.config import Config, first_seeds, load_config
from colearn.errors import ConfigError, ShortTraceback
from colearn.runs.comparison.api import compare as run_comparison
from colearn.runs.record.place import named_folder

from .kinds import AlgorithmGiven, Arguments, TaskGiven
from .named import Names
from .result import ComparisonResult
from .settings import settings_from

AlgorithmsGiven: TypeAlias = Sequence[AlgorithmGiven] | Mapping[str, AlgorithmGiven]
"""Names, classes or objects; a mapping's keys are the labels in the report."""

_ALGORITHMS = ("collm_cc", "collm_dc", "magrpo")


def compare(
    task: Config | TaskGiven | None = None,
    out: str | Path = "comparison",
    *,
    algorithms: AlgorithmsGiven | None = None,
    seeds: int | Sequence[int] | None = None,
    workers: int | None = None,
    **arguments: Unpack[Arguments],
) -> ComparisonResult:
    """Train several algorithms with several seeds on one task, and write a report.

    task: a `Config`, which sets everything except algorithms, seeds and workers; or a task as for
    `train`. If you pass a task instead of a `Config`, also pass `models`, `critic`, `reward`,
    `data`, `callbacks` and other sections as for `train`. out: the comparison's folder. Finished
    runs in this folder are kept, and unfinished runs are continued. algorithms: names or objects of
    `colearn.algorithms`; None: the algorithms in the config or, without a config, CoLLM-CC,
    CoLLM-DC and MAGRPO. seeds: the number of seeds, starting at 0, or a list of seeds; None: the
    seeds in the config, by default 3 seeds. workers: the number of runs in parallel, each in a
    separate process. If any object that you pass has no importable name, all runs are executed in
    this process, one after the other.

    Errors: ConfigError or TaskError, one line that names the argument and the remedy, raised before
    any run starts; CheckpointError if `out` holds anything other than this comparison; ColearnError
    that names the first failed run, raised after the report of the other runs has been written.
    """
    with ShortTraceback():
        names = Names()
        if isinstance(task, Config):
            if given := [name for name, argument in arguments.items() if argument is not None]:
                raise ConfigError(f"{given[0]}: the config says it; set it there")
            plain = task.model_dump(mode="json")
        else:
            plain = settings_from(task, names, arguments)
            algorithms = _ALGORITHMS if algorithms is None else algorithms
        chosen = dict(plain.get("compare", {}))
        if algorithms is not None:
            chosen["algorithms"] = _entries(algorithms, names, chosen.get("algorithms", {}))
        if seeds is not None:
            chosen["seeds"] = _seeds(seeds)
        if workers is not None:
            chosen["workers"] = workers
        config = load_config({**plain, "compare": chosen})
        names.tell(named_folder(out, "out"))
        if not names.objects:
            return ComparisonResult(run_comparison(config, out).parent)
        from .runs_here import make_here  # loads torch

        return ComparisonResult(run_comparison(config, out, make=make_here).parent)


def _seeds(seeds: Any) -> Sequence[Any]:
    """Returns the seeds for a number of seeds or a list. Errors: ConfigError for anything else."""
    if isinstance(seeds, Integral) and not isinstance(seeds, bool):
        return first_seeds(int(seeds), "seeds")
    if isinstance(seeds, str | bool) or not isinstance(seeds, Iterable):
        raise ConfigError(f"seeds: {seeds!r:.60} is no number of seeds and no list of seeds")
    return list(seeds)


def _entries(
    algorithms: AlgorithmsGiven, names: Names, known: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Returns the entries of `compare.algorithms`. Errors: ConfigError for a value that is not an
    algorithm."""
    if isinstance(algorithms, str):
        raise ConfigError(f"algorithms: '{algorithms}' is one name; give a list")
    if isinstance(algorithms, type) or not isinstance(algorithms, Iterable):
        name = getattr(algorithms, "__name__", type(algorithms).__name__)
        raise ConfigError(f"algorithms: {name} is no list; give a list of algorithms")
    if not algorithms:
        raise ConfigError("algorithms: name one or more to compare")
    labelled = algorithms.items() if isinstance(algorithms, Mapping) else _labelled(algorithms)
    entries = {}
    for label, algorithm in labelled:
        if isinstance(algorithm, str) and algorithm == label and label in known:
            entries[label] = dict(known[label])
            continue
        section = names.algorithm(algorithm)
        entries[label] = {
            f"algorithm.{key}": value
            for key, value in section.items()
            if key != "name" or value != label
        }
    return entries


def _labelled(algorithms: Sequence[AlgorithmGiven]) -> list[tuple[str, AlgorithmGiven]]:
    """Returns each algorithm with its name as its label; repeated names are numbered."""
    labelled: dict[str, AlgorithmGiven] = {}
    for algorithm in algorithms:
        name = Names().algorithm(algorithm)["name"].rpartition(":")[2]
        number, label = 1, name
        while label in labelled:
            number += 1
            label = f"{name}_{number}"
        labelled[label] = algorithm
    return list(labelled.items())
