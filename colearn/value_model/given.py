"""Finds the critics named by `critic.from` (an earlier run or a folder) and checks that these
critics fit the run."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from filelock import FileLock

from colearn.config import Config, ResolvedRun, resolve
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.files.cache import cache_place
from colearn.models.critic_folder import CriticManifest, is_critic, named_part, read_critic
from colearn.record import open_run
from colearn.record.checksums import damages, write_checksums
from colearn.record.folder import CONFIG
from colearn.text.notes import note

from .keep import described, keep_critic
from .loaded import critic_folder, note_without_shares

_FIELD = "critic.from"


def with_given_critic(config: Config) -> Config:
    """Return the config with a local folder of saved critics as `critic.from`, and with the
    `critic.baseline` of these critics. Critics of an earlier run are first written into the cache,
    and critics on the hub are first downloaded.

    Errors: ConfigError for a folder or run without a critic, or with another `critic.baseline` than
    the config's; CheckpointError for a run without a checkpoint.
    """
    critic = config.critic
    if critic is None or critic.from_ is None:
        return config
    path = critic_folder(critic.from_)
    if (path / CONFIG).is_file():
        path = _kept_from_run(path)
    elif not is_critic(path) and not any(map(is_critic, path.glob("critic-*"))):
        read_critic(path, _FIELD)
    baseline = "item" if _has_means(path) else "none"
    if critic.baseline not in (None, baseline):
        raise ConfigError(
            f"critic.baseline: is {critic.baseline}, and the critic in {critic.from_} has "
            f"{baseline}; set it to null"
        )
    changed = critic.model_copy(update={"from_": str(path), "baseline": baseline})
    return config.model_copy(update={"critic": changed})


def _has_means(path: Path) -> bool:
    """Whether critics in a folder add the mean return of each item to the predictions of their
    networks.

    Errors: ConfigError if some critics have means and others do not.
    """
    folders = [path] if is_critic(path) else list(filter(is_critic, path.glob("critic-*")))
    have_means = {bool(read_critic(folder, _FIELD).item_means) for folder in folders}
    if len(have_means) > 1:
        raise ConfigError(
            f"{_FIELD}: some critics of {path} have means by item and others none; export or fit "
            "all of them alike"
        )
    return have_means == {True}


def given_critics(run: ResolvedRun) -> dict[str, CriticManifest]:
    """Return the manifest of every value model in `critic.from`, keyed by name. The result is empty
    without `critic.from`.

    Errors: ConfigError, one line, for a critic that does not fit the run.
    """
    critic = run.config.critic
    if critic is None or critic.from_ is None:
        return {}
    manifests = {}
    for key in run.learners:
        if key.kind == "critic":
            folder = Path(run.path(key))
            manifests[key.model] = manifest = read_critic(folder, _FIELD)
            for damage in damages(folder):
                raise ConfigError(f"{_FIELD}: {damage}; copy or export the critic again")
            _check_fit(run, key, manifest, str(folder), foreign=critic.foreign)
            note_without_shares(manifest, f"{_FIELD}: {folder}")
    return manifests


def _check_fit(
    run: ResolvedRun, key: NetworkKey, manifest: CriticManifest, folder: str, *, foreign: bool
) -> None:
    if manifest.base is not None:
        raise ConfigError(
            f"{_FIELD}: {folder} is an adapter; export the critic without --adapter, which merges "
            "it into its base"
        )
    run_manifest = CriticManifest(**described(run, key), **_UNSAID)
    fields = ["critic", "reads", "discount", "credit"]
    fields += [] if foreign else ["task", "agents", "readers", "horizon"]
    for name in fields:
        value, expected = getattr(manifest, name), getattr(run_manifest, name)
        if name == "reads":  # settings that are newer than the manifest have their defaults
            value = named_part(manifest.part)[1]
        if value != expected:
            remedy = (
                "give one with: colearn critic fit"
                if name not in _FOREIGN
                else "give another, or set critic.foreign: true if its texts mean the same here"
            )
            raise ConfigError(
                f"{_FIELD}: {folder} was trained with {_WORDS[name]} {_text_of(value)}, and this "
                f"run has {_text_of(expected)}; {remedy}"
            )


_FOREIGN = ("task", "agents", "readers", "horizon")
_WORDS = {
    "critic": "the critic",
    "reads": "the critic's settings",
    "discount": "the discount",
    "credit": "the credit",
    "task": "the task",
    "agents": "the agents",
    "readers": "the readers",
    "horizon": "a horizon of",
}
_UNSAID: dict[str, Any] = {
    "centre": 0.0,
    "deviation": 1.0,
    "bias": 0.0,
    "max_length": 1,
    "joint_actions": 0,
}
"""Placeholder values for the manifest fields that a config does not determine."""


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text_of(entry)}" for name, entry in value.items())
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _kept_from_run(folder: Path) -> Path:
    """Return the cache folder with the newest critics of a run; the folder is written only once."""
    run_folder = open_run(folder)
    checkpoint = run_folder.checkpoints.choose()
    checkpoint.say_passed()
    run = resolve(with_given_critic(run_folder.config()), agents=run_folder.record().agents)
    keys = [key for key in run.learners if key.kind == "critic"]
    if not keys:
        raise ConfigError(
            f"{_FIELD}: the run in {folder} has no critic of its own; fit one on its episodes "
            f"with: colearn critic fit {folder}"
        )
    digest = hashlib.blake2b(digest_size=8)
    for key in keys:
        for path in sorted((checkpoint.path / str(key)).iterdir()):
            digest.update(path.read_bytes())
    cache = cache_place(f"critics-{digest.hexdigest()}")
    with FileLock(f"{cache}.lock"):  # only one of several processes writes
        if not cache.is_dir():
            note(f"keeps the critic of {folder}, once, in {cache}")
            aside = cache.with_suffix(".partial")
            shutil.rmtree(aside, ignore_errors=True)
            for key in keys:
                (aside / str(key)).mkdir(parents=True)
                keep_critic(
                    run,
                    key,
                    checkpoint,
                    aside / str(key),
                    joint_actions=critic_joint_actions(run, checkpoint.progress.environment_steps),
                )
                write_checksums(aside / str(key))
            aside.rename(cache)
    return cache


def critic_joint_actions(run: ResolvedRun, own_actions: int) -> int:
    """Return the number of joint actions that a run's critics were trained on. `own_actions` is
    the number within the run, which does not count if the critics were frozen. The number for the
    critics in `critic.from` is added."""
    critic = run.config.critic
    inherited = max((m.joint_actions for m in given_critics(run).values()), default=0)
    return inherited + (own_actions if critic is None or critic.frozen < 1.0 else 0)
