"""Digests of everything that a config names outside of itself: models and adapters, files and
folders of data, modules of code, programs of tools. A run saves the digests with its checkpoints, a
comparison saves them with its plan; both compare them before they go on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from colearn.config import ResolvedRun
from colearn.contract import DecPOMDP, NetworkKey
from colearn.contract.checked_task import CheckedTask
from colearn.errors import CheckpointError, DataNotHere, MissingExtra
from colearn.registry import Kind, installed, is_target
from colearn.registry.code_files import code_files, command_files, files_beside
from colearn.registry.given import given, is_given, is_here
from colearn.registry.named_files import CODE, DATA, SHELL, YAML
from colearn.registry.object_code import SCRIPT, definition_digest, object_digest, object_files
from colearn.registry.packages import package_digests
from colearn.text.notes import note

from .adapter_folder import is_adapter
from .digests import digest, file_digests
from .hub_files import model_folder, revision_folder

Files = Mapping[str, str]
"""Digests of files by name."""
Sources = Mapping[str, Files]
"""Digests of the files that each field of a config names."""

ACCEPT = "run.accept_changes=true"
_INTERPRETER = re.compile(r"python[\d.]*")
"""Names of a program that differs between machines, whose scripts are what a config means."""
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_REGISTERED: Mapping[str, Kind] = {"task.name": "tasks", "algorithm.name": "algorithms"}
"""Fields whose names other packages may register."""
_WITH_ROWS = ("dataset", "environment")
"""Tasks whose `path` may name a data set on a hub."""
_ROWS = ("task.path", "task.test_path")
_OF_COMMAND = re.compile(r"\bcommand(\.\d+)?$")
"""Fields with a command's words, such as `python agent.py` behind `sh -c` or `--rows=rows.csv`."""
_PASSED_OVER = (
    "base",
    "compare.",
    "critic.from",
    "run.callbacks.",
    "run.folders.",
    "run.trackers.",
)
"""Fields that name nothing on which a run's numbers depend, and those that name what the fields of
the networks name as well."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files behind one text of a config."""

    text: str
    """A path, a model's name or `module:Class`."""
    files: Files


def sources_of(
    run: ResolvedRun, folders: Mapping[str, str], *, plays: bool = True
) -> dict[str, Files]:
    """Compute the digests for a run's checkpoints, by field. Weights are included only for models
    that checkpoints do not save completely. `folders`: the result of `base_folders`; models missing
    from it are skipped. `plays`: whether the run's task is played, so that its rows on a hub are
    read."""
    sources = _read(run, folders, every=False, plays=plays)
    return {field: source.files for field, source in sources.items()}


def compared_sources(run: ResolvedRun) -> dict[str, SourceFiles]:
    """Compute the digests for a comparison, by field, with the weights of all models. Embedded
    models are skipped, because the task and its rows determine them."""
    folders = {path: path for path in map(run.path, run.networks)}
    return _read(run, folders, every=True, plays=True)


def fetch_models(run: ResolvedRun) -> None:
    """Download the newest weights of a run's models on the hub, which the run is about to load, so
    that their digests are known. Errors: ConfigError for a model that is not there."""
    for key in run.networks:
        path = run.path(key)
        if _HUB_NAME.fullmatch(path) and not Path(path).is_dir():
            revision_folder(path, None, weights=True, subject=f"{run.field(key)}: the model")


def _read(
    run: ResolvedRun, folders: Mapping[str, str], *, every: bool, plays: bool
) -> dict[str, SourceFiles]:
    weights: dict[str, tuple[str, bool]] = {}
    for key in run.networks:
        path, field = run.path(key), _field(run, key)
        if path in folders:
            folder = path if is_adapter(path) else folders[path]
            needed = every or weights.get(field, (folder, False))[1] or not _kept_whole(run, key)
            weights[field] = folder, needed
    named = [
        (field, text)
        for field, text in _texts(run.config.model_dump(mode="json"), "")
        if not field.startswith(_PASSED_OVER) and field not in weights and not _is_model_path(field)
    ]
    weights |= {field: (text, True) for field, text in named if _is_model(text)}
    sources = {
        field: SourceFiles(path, file_digests(path, field, weights=needed))
        for field, (path, needed) in weights.items()
    }
    modules = dict(_modules_run(named))
    for field, text in named:
        if field in sources:
            continue
        named_files = _files(field, text, modules.get(field))
        files = {name: digest(file) for name, file in named_files.items()}
        files |= _definition(text, field, named_files)
        if field in _ROWS and not files and plays and not is_given(text):
            files |= _hub_rows(run.task) if run.config.task.name in _WITH_ROWS else {}
        if field == "task.name":
            files |= package_digests(text, run.config.task.settings)
        if files:
            sources[field] = SourceFiles(text, files)
    return sources


def _field(run: ResolvedRun, key: NetworkKey) -> str:
    """The setting that names a network's model. If `critic.from` has a folder for each critic, the
    folder's name is added, because the folders have one setting."""
    critic = run.config.critic
    if key.kind == "critic" and critic is not None and critic.from_ is not None:
        folder = Path(run.path(key)).name
        return f"critic.from.{folder}" if folder == str(key) else "critic.from"
    return run.field(key)


def _definition(text: str, field: str, files: Mapping[str, Path]) -> dict[str, str]:
    """The digest of a function's or class's own source, by its name: a program that gave it as an
    object may give it from a module later; of an object also those of what it consists of."""
    if not is_target(text):
        return {}
    if is_given(text):
        return object_digest(given(text, field)) if is_here(text) else {}
    return definition_digest(text, files)


@lru_cache(maxsize=4)
def _hub_rows(task: DecPOMDP[Any, Any]) -> dict[str, str]:
    """The digest of the rows of a data set on a hub, whose files may be others tomorrow; empty if
    they cannot be read, as the task will say."""
    splits = ("train", "test")
    try:
        rows = [repr(item) for split in splits for item in CheckedTask(task).items(split)]
    except (DataNotHere, MissingExtra):
        return {}
    return {"the content": hashlib.sha256("\n".join(rows).encode()).hexdigest()}


def _files(field: str, text: str, module: str | None) -> dict[str, Path]:
    """The files behind a text that is no model."""
    if module is not None:
        return code_files(module)
    if (kind := _REGISTERED.get(field)) is not None and text in installed(kind):
        return code_files(installed(kind)[text].partition(":")[0])
    if is_given(text):
        return object_files(given(text, field)) if is_here(text) else {}
    if is_target(text):
        return code_files(text.partition(":")[0])
    if _is_file(text):
        file = Path(text).expanduser()
        followed = file.suffix in (CODE, SHELL, *YAML)
        return files_beside(file, file.parent) if followed else {file.name: file}
    if _is_data_folder(field, text):
        return _data_files(Path(text).expanduser())
    return command_files(text) if _OF_COMMAND.search(field) else {}


def check_sources(
    checkpoint: Path,
    before: Sources,
    now: Sources,
    *,
    resumes: bool = False,
    accepts: bool = False,
) -> tuple[str, ...]:
    """Compare the files with those that were used to train a checkpoint.

    `before`: the checkpoint's digests. `resumes`: whether further rows are drawn and paid, so that
    data and code must be equal, too; otherwise, changed data and code are reported on stderr.
    `accepts`: whether changes are meant; they are reported on stderr and returned as `field: file`.
    Errors: CheckpointError, one line, for the first change.
    """
    changes = []
    for field in sorted(before.keys() & now.keys()):
        name = first_change(before[field], now[field])
        if name is None:
            continue
        if not resumes and not _of_a_model(field, now[field]):
            if name in before[field] and name in now[field]:
                note(f"{field}: {name} is not the one that {checkpoint} was trained on")
            continue
        changes.append(f"{field}: {name}")
        suffix, back = (
            (" of this model", "the model") if _of_a_model(field, now[field]) else ("", "the file")
        )
        line = f"{field}: {name}{suffix} is not the one that {checkpoint} was trained on"
        if not accepts:
            meant = f"go on with it: --set {ACCEPT}" if resumes else "start another run"
            raise CheckpointError(f"{line}; put {back} back, or {meant}")
        note(line)
    return tuple(changes)


def first_change(before: Files, now: Files) -> str | None:
    """The first name whose file differs, is missing or is new; None if there is none, or if nothing
    was found before or now, such as a model that was not in the cache yet."""
    if not before or not now:
        return None
    names = sorted(before.keys() | now.keys())
    if any(SCRIPT in files or not any("." in name for name in files) for files in (before, now)):
        names = sorted(before.keys() & now.keys())  # of a program, whose script is not compared
    return next((name for name in names if before.get(name) != now.get(name)), None)


def _of_a_model(field: str, files: Files) -> bool:
    return _is_model_path(field) or "config.json" in files


def _is_model_path(field: str) -> bool:
    return field.startswith(("critic.path", "critic.from")) or (
        field.startswith("models.") and field.endswith((".path", ".teacher"))
    )


def _kept_whole(run: ResolvedRun, key: NetworkKey) -> bool:
    """Whether checkpoints hold all weights of a network, so that the base model's weights are not
    read again."""
    if run.settings(key).lora is not None:
        return False
    saved = key in run.learners or key.kind == "past"
    return saved or (key.kind == "reference" and run.moving)


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Return all strings in a plain config, keyed by dotted path."""
    if isinstance(value, str):
        if value and len(value) <= 4096 and value.isprintable():
            yield field, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{field}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{field}.{number}")


def _modules_run(named: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields the modules of commands such as `[python, -m, tools.server]`, by field."""
    for (_, option), (field, text) in pairwise(named):
        if option == "-m":
            yield field, text


def _is_model(text: str) -> bool:
    """Whether a string is the path of a model's folder, or the name of a model in the hub's
    cache."""
    folder = Path(text).expanduser()
    try:
        if not folder.is_dir():
            return bool(_HUB_NAME.fullmatch(text)) and model_folder(text) is not None
        described = (folder / "config.json").is_file() or is_adapter(text)
        return described and any(folder.glob("*.safetensors"))
    except (OSError, RuntimeError):  # a name that is too long, a home that is not known
        return False


def _is_file(text: str) -> bool:
    """Whether a string is the path of an existing file. A bare word without a suffix is not a path,
    even if a file has that name."""
    try:
        file = Path(text).expanduser()
        named = "/" in text or bool(file.suffix)
        return named and not _INTERPRETER.fullmatch(file.name) and file.is_file()
    except (OSError, RuntimeError):  # a name that is too long, a home that is not known
        return False


def _is_data_folder(field: str, text: str) -> bool:
    """Whether a string is the path of an existing folder. Except in `task.corpus`, a bare word is
    not a path, even if a folder has that name."""
    named = "/" in text or field == "task.corpus"
    try:
        return named and Path(text).expanduser().is_dir()
    except (OSError, RuntimeError):  # a name that is too long, a home that is not known
        return False


def _data_files(folder: Path) -> dict[str, Path]:
    """The data files under a folder, keyed by path within the folder."""
    return {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*"))
        if set(DATA).intersection(file.suffixes) and file.is_file()
    }
