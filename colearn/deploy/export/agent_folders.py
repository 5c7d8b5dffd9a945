"""Exports the agents of a run, one folder per agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.config import SamplingSettings
from colearn.errors import ConfigError, nearest
from colearn.runs.record.checkpoints import Step
from colearn.runs.record.checksums import write_checksums
from colearn.runs.record.place import named_folder

from .manifest import MANIFEST, AgentManifest, Dtype
from .staging import staged

if TYPE_CHECKING:
    from colearn.rollout.agents import ChatFormat

    from .run_reader import Trained


def export_run(
    run: str | Path,
    to: str | Path,
    *,
    adapter: bool = False,
    step: Step = "last",
    dtype: Dtype | None = None,
    overwrite: bool = False,
    agents: Sequence[str] | None = None,
) -> dict[str, Path]:
    """Write every agent of a run into `to`/AGENT; return the folders by agent.

    `adapter` writes a LoRA adapter that names its base instead of merged weights, for each model
    that has one. `step` selects a checkpoint: an iteration, `last` or `best`. `dtype` is the type
    of merged weights (default: the run's compute type, or float32 if the compute type would lose
    more than 10% of what training changed). `overwrite` replaces exported agents.
    `agents` names some of the run's agents (default: all).

    Errors: CheckpointError for a run that cannot be read, ConfigError for everything else; both are
    raised before `to` is changed.
    """
    from colearn.models.saved_folder import read_by_4

    from .card import model_card
    from .run_reader import read_trained
    from .weights import check_adapter

    trained = read_trained(Path(run), step)
    if adapter:
        check_adapter(trained)
        if dtype is not None:
            raise ConfigError("--dtype: an adapter stays in float32; leave it or --adapter out")
    chosen = trained.agents if agents is None else list(agents)
    unknown = sorted(set(chosen) - set(trained.agents))
    if unknown:
        raise ConfigError(f"agents: unknown '{unknown[0]}'; {nearest(unknown[0], trained.agents)}")
    with staged(named_folder(to, "--to"), chosen, overwrite=overwrite) as folders:
        for agent, folder in folders.items():
            manifest = _manifest(trained, agent, adapter, dtype)
            manifest, chat, exact = _write_agent(trained, manifest, folder, chosen=dtype)
            card = model_card(
                trained,
                manifest,
                exact=exact,
                needs_5=manifest.base is None and not read_by_4(folder),
                tags=chat.tags,
            )
            manifest.write(folder)
            finish_folder(folder, card)
    return {agent: Path(to) / agent for agent in chosen}


def finish_folder(folder: Path, card: str, manifest: str = MANIFEST) -> None:
    """Write README.md and SHA256SUMS, and make the files readable for other users: files that
    safetensors writes are readable only for their owner, but a server often runs as another
    user."""
    (folder / "README.md").write_text(card, encoding="utf-8")
    mode = (folder / manifest).stat().st_mode
    for path in folder.glob("*.safetensors"):
        path.chmod(mode)
    write_checksums(folder)


def _manifest(trained: Trained, agent: str, adapter: bool, dtype: Dtype | None) -> AgentManifest:
    from .weights import base_reference, has_adapter

    config = trained.run.config
    settings = config.agents[agent]
    task: dict[str, Any] = config.task.settings
    adapter = adapter and has_adapter(config.models[settings.model])
    if config.wrapper is not None:
        task = {**task, "wrapper": config.wrapper.plain()}
    return AgentManifest(
        agent=agent,
        task=config.task.name,
        task_settings=task,
        algorithm=config.algorithm.name,
        system=settings.system,
        chat="plain" if settings.chat == "plain" else "auto",
        window=settings.window,
        sampling=settings.sampling.deployed,
        dtype=dtype or config.models[settings.model].dtype,
        weights="adapter" if adapter else "merged",
        base=base_reference(trained.paths[settings.model]) if adapter else None,
    )


def _write_agent(
    trained: Trained, manifest: AgentManifest, folder: Path, *, chosen: Dtype | None
) -> tuple[AgentManifest, ChatFormat, bool]:
    """Write weights, tokenizer and generation settings; return the manifest with the type of the
    weights, the chat format of training, and whether the chat template produces the token ids of
    training. `chosen`: the type that the user chose."""
    from colearn.models.kept_change import kept_type
    from colearn.models.load import load_end_ids, load_tokenizer
    from colearn.models.saved_folder import copy_processors, save_tokenizer
    from colearn.rollout.agents import ChatFormat

    from .template import spells_training, write_template
    from .weights import load_actor, save_adapter, save_merged

    settings = trained.run.config.agents[manifest.agent]
    field = f"models.{settings.model}.path"
    path = trained.paths[settings.model]
    tokenizer: Any = load_tokenizer(path, field=field)
    form = {"model_end_ids": load_end_ids(path, field=field), **settings.chat_format}
    chat = ChatFormat(tokenizer, **form)
    template = write_template(tokenizer, **form)
    network = load_actor(trained, settings.model)
    if manifest.base is not None:
        save_adapter(network, folder, manifest.base)
    else:
        who = f"models.{settings.model}"
        dtype = kept_type(network, path, manifest.dtype, who=who, chosen=chosen, option="--dtype")
        manifest = manifest.model_copy(update={"dtype": dtype})
        save_merged(network, folder, dtype)
    save_generation_config(settings.sampling.deployed, chat, folder)
    tokenizer.chat_template = template
    save_tokenizer(tokenizer, folder)
    copy_processors(path, folder)
    return manifest, chat, spells_training(tokenizer, chat)


def save_generation_config(sampling: SamplingSettings, chat: ChatFormat, folder: Path) -> None:
    """Write `folder/generation_config.json`.

    For greedy sampling, the file contains no temperature, as transformers requires. Stop strings
    are stored only in agent.json. If generation_config.json contained stop strings, `generate`
    would require the tokenizer as an argument.
    """
    from transformers import GenerationConfig

    settings: dict[str, Any] = {"do_sample": False}
    if sampling.temperature > 0:
        settings = {
            "do_sample": True,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k or 0,  # 0 is off; left out it would be 50
        }
    GenerationConfig(
        max_new_tokens=sampling.max_tokens,
        eos_token_id=sorted(chat.end_ids),
        pad_token_id=chat.tokenizer.pad_token_id,
        bos_token_id=chat.tokenizer.bos_token_id,
        **settings,
    ).save_pretrained(folder)
