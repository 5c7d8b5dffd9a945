"""Exports the critics of a run: one folder per value model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.record.checkpoints import Step
from colearn.record.checksums import write_checksums

from .run import Dtype, share_files
from .staging import staged

if TYPE_CHECKING:
    from .trained import Trained


def export_critics(
    run: str | Path,
    to: str | Path,
    *,
    adapter: bool = False,
    step: Step = "last",
    dtype: Dtype | None = None,
    overwrite: bool = False,
) -> dict[str, Path]:
    """Write every critic of a run into `to`/critic-NAME; the folders by value model.

    The team of the checkpoint plays the held-out items once: the card says what the critic explains
    of their returns. The arguments are those of `export_run`.

    Errors: CheckpointError for a run that cannot be read, ConfigError for everything else, each
    before `to` is changed.
    """
    from colearn.models.critic_folder import CRITIC
    from colearn.study.held_out import held_out_episodes
    from colearn.value_model.keep import keep_critic
    from colearn.value_model.loaded import load_critic

    from .critic_card import critic_card
    from .trained import read_trained

    trained = read_trained(Path(run), step)
    keys = _critics(trained, adapter=adapter)
    if adapter and dtype is not None:
        raise ConfigError("--dtype: an adapter stays in float32; leave it or --adapter out")
    episodes = held_out_episodes(trained.folder.config(), trained.checkpoint)
    names = [str(key) for key in keys]
    with staged(Path(to), names, overwrite=overwrite, marker=CRITIC) as folders:
        for key in keys:
            folder = folders[str(key)]
            manifest = keep_critic(
                trained.run,
                key,
                trained.checkpoint,
                folder,
                joint_actions=trained.progress.environment_steps,
                adapter=adapter,
                dtype=dtype,
            )
            manifest = manifest.model_copy(
                update={"explained": load_critic(folder, device="cpu").worth(episodes)}
            )
            manifest.write(folder)
            (folder / "README.md").write_text(critic_card(trained, manifest), encoding="utf-8")
            share_files(folder, CRITIC)
            write_checksums(folder)
    return {key.model: Path(to) / str(key) for key in keys}


def _critics(trained: Trained, *, adapter: bool) -> list[NetworkKey]:
    """The value models. Errors: ConfigError for a run without any, or without an adapter."""
    run = trained.run
    keys = [key for key in run.learners if key.kind == "critic"]
    if not keys:
        shared = run.heads
        told = "its value heads are on the agents' models (critic.share)" if shared else ""
        raise ConfigError(
            f"--critics: {trained.folder.path} has no critic of its own"
            + (f": {told}" if told else f"; {run.config.algorithm.name} trains none")
            + "; take a run with critic.path"
        )
    if adapter and run.settings(keys[0]).lora is None:
        raise ConfigError(
            "--adapter: the critic was trained in full and has no adapter; leave --adapter out"
        )
    return keys
