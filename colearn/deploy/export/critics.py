"""Exports the critics of a run, one folder per value model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from colearn.config import resolve
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.runs.record.checkpoints import Checkpoint, Step
from colearn.runs.record.place import named_folder

from .agent_folders import finish_folder
from .manifest import Dtype
from .staging import staged

if TYPE_CHECKING:
    from colearn.training.critic_fit import Fitted

    from .run_reader import Trained


def export_critics(
    run: str | Path,
    to: str | Path,
    *,
    step: Step = "last",
    dtype: Dtype | None = None,
    overwrite: bool = False,
) -> dict[str, Path]:
    """Write every critic of a run into `to`/critic-NAME; return the folders by value model.

    The checkpoint's team plays the held-out items once. From these episodes, the model card reports
    the share of the variance of returns that the critic explains. The arguments are those of
    `export_run`.

    Errors: CheckpointError for a run that cannot be read, ConfigError for everything else; both are
    raised before `to` is changed.
    """
    from colearn.methods.values.critic_folder import keep_critic
    from colearn.methods.values.given import critic_joint_actions, with_given_critic
    from colearn.methods.values.loaded import load_critic
    from colearn.models.digests import CRITIC
    from colearn.training.study.held_out import held_out_episodes

    from .critic_card import critic_card
    from .run_reader import read_trained

    trained = read_trained(Path(run), step)
    config = with_given_critic(trained.folder.config())
    trained = replace(trained, run=resolve(config, agents=trained.record.agents))
    keys = _critics(trained)
    episodes = held_out_episodes(config, trained.checkpoint)
    joint_actions = critic_joint_actions(trained.run, trained.progress.environment_steps)
    origin = {
        "trained": f"beside its team by {trained.run.config.algorithm.name}",
        "checkpoint": f"iteration {trained.progress.iteration}",
        "seed": str(trained.run.config.run.seed),
    }
    names = [str(key) for key in keys]
    with staged(named_folder(to, "--to"), names, overwrite=overwrite, marker=CRITIC) as folders:
        for key in keys:
            folder = folders[str(key)]
            manifest = keep_critic(
                trained.run,
                key,
                Checkpoint(trained.checkpoint),
                folder,
                joint_actions=joint_actions,
                dtype=dtype,
                option="--dtype",
            )
            manifest = manifest.model_copy(
                update={"explained": load_critic(folder, device="cpu").worth(episodes)}
            )
            manifest.write(folder)
            finish_folder(folder, critic_card(manifest, origin), CRITIC)
    return {key.model: Path(to) / str(key) for key in keys}


def _critics(trained: Trained) -> list[NetworkKey]:
    """Return the value models. Errors: ConfigError if the run has no value models."""
    run = trained.run
    keys = [key for key in run.learners if key.kind == "critic"]
    if not keys:
        shared = run.heads
        reason = "its value heads are on the agents' models (critic.share)" if shared else ""
        raise ConfigError(
            f"--critics: {trained.folder.path} has no critic of its own"
            + (f": {reason}" if reason else f"; {run.config.algorithm.name} trains none")
            + "; take a run with critic.path"
        )
    return keys


def write_fit(fitted: Fitted, out: str | Path, *, overwrite: bool = False) -> dict[str, Path]:
    """Write the critics of `fit_critic` into `out` itself, or into `out`/critic-NAME if there are
    several; return the folders by value model.

    Errors: ConfigError, before anything is written, for a folder that exists or cannot be written.
    """
    from colearn.models.digests import CRITIC
    from colearn.training.critic_fit import write_fitted

    from .critic_card import critic_card

    out = named_folder(out)
    keys = list(fitted.networks)
    to, names = (out.parent, [out.name]) if len(keys) == 1 else (out, list(map(str, keys)))
    with staged(to, names, overwrite=overwrite, marker=CRITIC) as folders:
        for key, name in zip(keys, names, strict=True):
            manifest = write_fitted(fitted, key, folders[name])
            card = critic_card(manifest, {"trained": "alone, on recorded episodes"})
            finish_folder(folders[name], card, CRITIC)
    return {key.model: to / name for key, name in zip(keys, names, strict=True)}
