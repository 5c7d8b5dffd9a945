"""Writes the README.md of an exported agent: the model card, made from the agent's run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import colearn
from colearn.config import ModelSettings
from colearn.errors import printable
from colearn.models.embedded_recipes import is_embedded
from colearn.runs.record import read_run
from colearn.runs.report.show import show_number
from colearn.text.masking import masked_settings

from .manifest import AgentManifest
from .run_reader import Trained
from .usage import usage


def model_card(
    trained: Trained, manifest: AgentManifest, *, exact: bool, needs_5: bool, tags: Sequence[str]
) -> str:
    """The model card as Markdown with the YAML header of a model hub. It contains the names of the
    team's other agents, but none of their text.

    `exact`: whether the chat template produces exactly the token ids of training. `needs_5`:
    whether transformers 4 cannot read the model. `tags`: as for `usage`.
    """
    model = trained.run.config.models[trained.run.config.agents[manifest.agent].model]
    parts = [
        _header(manifest, model),
        f"# {manifest.agent}, trained with {manifest.algorithm} on {manifest.task}\n",
        _introduction(trained, manifest),
        _training(trained, manifest, model),
        _evaluation(trained),
        usage(
            manifest,
            rank=model.lora.rank if model.lora else None,
            exact=exact,
            needs_5=needs_5,
            tags=tags,
        ),
    ]
    return "\n".join(parts)


def _header(manifest: AgentManifest, model: ModelSettings) -> str:
    fields: dict[str, Any] = {
        "library_name": "transformers" if manifest.weights == "merged" else "peft",
        "pipeline_tag": "text-generation",
        "tags": ["colearn", "multi-agent", "reinforcement-learning", manifest.algorithm],
    }
    if _on_a_hub(model.path):
        fields["base_model"] = model.path
        fields["base_model_relation"] = "finetune" if manifest.weights == "merged" else "adapter"
    return f"---\n{yaml.safe_dump(fields, sort_keys=False)}---\n"


def _introduction(trained: Trained, manifest: AgentManifest) -> str:
    others = [f"`{agent}`" for agent in trained.run.config.agents if agent != manifest.agent]
    team = f"together with {', '.join(others)}" if others else "alone"
    return (
        f"The agent `{manifest.agent}` of a team: it was trained {team}, acts on what it sees and\n"
        "remembers itself, and needs nothing of the trainer or of the others' models to run.\n"
    )


def _training(trained: Trained, manifest: AgentManifest, model: ModelSettings) -> str:
    config, progress = trained.run.config, trained.progress
    sharing = [
        agent
        for agent, settings in config.agents.items()
        if settings.model == config.agents[manifest.agent].model and agent != manifest.agent
    ]
    rows = {
        "task": _choice(manifest.task, manifest.task_settings),
        "algorithm": _choice(manifest.algorithm, config.algorithm.settings),
        "base": _base(model.path),
        "trained": _trained(model),
        "weights shared in training with": ", ".join(f"`{agent}`" for agent in sharing) or "nobody",
        "optimiser": _optimiser(model, config.train.epochs),
        "compute type": model.dtype,
        "budget": (
            f"{progress.environment_steps} of {config.train.environment_steps} environment steps "
            f"(joint actions), {progress.updates} updates"
        ),
        "checkpoint": f"iteration {progress.iteration}",
        "seed": str(config.run.seed),
        "sampling": _choice("", manifest.sampling.model_dump(exclude_none=True)),
        "window": f"{manifest.window} tokens" if manifest.window else "the whole history",
        "trained with": f"colearn {trained.record.version}",
        "exported with": f"colearn {colearn.__version__}",
    }
    return training_section(rows)


def training_section(rows: Mapping[str, str]) -> str:
    """Facts about the training, by name, as a Markdown section."""
    lines = [f"| {name} | {text} |" for name, text in rows.items()]
    return "\n".join(["## Training\n", "| | |", "|---|---|", *lines, ""])


def _evaluation(trained: Trained) -> str:
    """The run's scores before training, and at the last evaluation at or before the checkpoint."""
    settings = trained.run.config.evaluation
    evaluations = read_run(trained.folder).evaluations
    reached = [e for e in evaluations if e.iteration <= trained.progress.iteration]
    before, after = evaluations[0], (reached or evaluations)[-1]
    first = (trained.record.headline.metric, "return")
    metrics = list(dict.fromkeys((*first, *before.metrics, *after.metrics)))
    rows = [
        [one_cell(name), *(show_number(line.metrics.get(name)) for line in (before, after))]
        for name in metrics
    ]
    text = (
        f"The whole team on the split `{settings.split}`"
        f"{', greedily' if settings.greedy else ''}; before: iteration {before.iteration}, "
        f"after: iteration {after.iteration} of this run. One run, so there is no interval."
    )
    table = [["", "before", "after"], ["---"] * 3, *rows]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join(["## Evaluation\n", text, "", *lines, ""])


def _base(path: str) -> str:
    if is_embedded(path):
        return f"`{path}`, the small model that colearn makes for the task"
    return f"`{path}`" if _on_a_hub(path) else f"`{Path(path).name}`, a local folder"


def _on_a_hub(path: str) -> bool:
    return not (is_embedded(path) or path.startswith((".", "/", "~")) or Path(path).is_dir())


def _trained(model: ModelSettings) -> str:
    if not model.trained:
        return "nothing: it plays as it was"
    if model.lora is None:
        return "all weights"
    return f"LoRA, rank {model.lora.rank}, alpha {model.lora.alpha:g}"


def _optimiser(model: ModelSettings, epochs: int) -> str:
    if not model.trained:
        return "none"
    rate = f"{model.learning_rate:g} ({model.schedule})"
    return f"AdamW, learning rate {rate}, epochs per iteration: {epochs}"


def _choice(name: str, settings: Mapping[str, Any]) -> str:
    listed = ", ".join(
        f"{key}: {json_cell(value)}" for key, value in masked_settings(settings).items()
    )
    named = f"`{name}`" if name else ""
    return f"{named} ({listed})" if named and listed else named or listed


def json_cell(value: Any) -> str:
    """Formats a value for a table cell as JSON on one line, which a config also accepts."""
    return f"`{json.dumps(value, ensure_ascii=False, default=str)}`".replace("|", "\\|")


def one_cell(name: str) -> str:
    """Format a metric's name for one cell of a table. Callbacks may choose arbitrary names."""
    return printable(name).replace("|", "\\|")
