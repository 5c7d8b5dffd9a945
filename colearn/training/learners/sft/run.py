"""Fine-tunes the models of a config, one after the other, on their agents' dialogues."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from colearn.config import Config, ModelSettings, resolve
from colearn.contract.rotary import steady_positions
from colearn.errors import ConfigError, required
from colearn.models.folders import with_folders
from colearn.models.load import (
    load_base,
    load_end_ids,
    load_tokenizer,
    read_config,
    resolve_device,
)
from colearn.models.merging import merged
from colearn.models.saved_folder import copy_processors, save_model, save_tokenizer
from colearn.models.torch_settings import use_threads
from colearn.rollout.agents import ChatFormat
from colearn.runs.record.place import named_folder

from .dialogues import Dialogue, read_dialogues, token_row


def fine_tune(
    config: Config,
    data: str | Path,
    out: str | Path,
    *,
    epochs: float,
    learning_rate: float,
    batch: int,
) -> dict[str, Path]:
    """Train each model that has dialogues, and write the model to OUT/MODEL, a folder that
    `models.MODEL.path` can name. Returns the folders by model.

    A model that several agents share is trained on the dialogues of all of them. For a model with
    LoRA settings, an adapter is trained and then merged. A step is taken on `batch` dialogues; the
    learning rate falls to 0 over `epochs` passes.

    Errors: ConfigError; MissingExtra without trl or datasets.
    """
    trl, datasets = required("trl", "sft"), required("datasets", "sft")
    run = with_folders(resolve(config))
    config, target = run.config, named_folder(out)
    dialogues = read_dialogues(Path(data), list(config.agents))
    if target.exists() and any(target.iterdir()):
        raise ConfigError(f"--out {target}: is not empty; name another folder")
    folders = {}
    for name, model in config.models.items():
        own_dialogues = [d for d in dialogues if config.agents[d.agent].model == name]
        if not own_dialogues:
            continue
        field = f"models.{name}.path"
        tokenizer = load_tokenizer(model.path, field=field)
        architecture = read_config(model.path, field).get_text_config()
        ends = load_end_ids(model.path, field=field)
        chats = {
            agent: ChatFormat(tokenizer, model_end_ids=ends, **config.agents[agent].chat_format)
            for agent in {dialogue.agent for dialogue in own_dialogues}
        }
        for chat in chats.values():
            chat.check_embedded(architecture.vocab_size, field)
        rows = [token_row(dialogue, chats[dialogue.agent]) for dialogue in own_dialogues]
        _check_lengths(rows, own_dialogues, steady_positions(architecture))
        arguments = trl.SFTConfig(
            num_train_epochs=epochs,
            learning_rate=learning_rate,
            per_device_train_batch_size=batch,
            max_length=None,
            seed=config.run.seed,
            use_cpu=resolve_device(config.run.device).type == "cpu",
            bf16=model.dtype == "bfloat16",
            fp16=model.dtype == "float16",
            **_QUIET,
        )
        folders[name] = _train(
            trl,
            name,
            model,
            tokenizer,
            datasets.Dataset.from_list(rows),
            arguments,
            target,
            config.run.threads,
        )
    return folders


_ADAPTER = "sft"
_QUIET: Mapping[str, Any] = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True}


def _check_lengths(
    rows: Sequence[Mapping[str, Sequence[int]]],
    dialogues: Sequence[Dialogue],
    positions: int | None,
) -> None:
    """Errors: ConfigError for a dialogue that is longer than its model reads."""
    for row, dialogue in zip(rows, dialogues, strict=True):
        tokens = len(row["input_ids"])
        if positions is not None and tokens > positions:
            raise ConfigError(
                f"{dialogue.where} has {tokens} tokens, and the model of '{dialogue.agent}' reads "
                f"{positions}; leave turns out, or name a model with a longer context"
            )


def _train(
    trl: Any,
    name: str,
    model: ModelSettings,
    tokenizer: Any,
    rows: Any,
    arguments: Any,
    out: Path,
    threads: int | None,
) -> Path:
    base = load_base(
        model.path,
        compute="float32",
        trained=True,
        device=arguments.device,
        field=f"models.{name}.path",
    )
    # the trainer sets other values in both, for its own passes
    settings, generation = map(copy.deepcopy, (base.causal.config, base.causal.generation_config))
    if model.lora is not None:
        try:
            base.add_seeded_adapter(_ADAPTER, model.lora, arguments.seed)
            base.check_headless(_ADAPTER, "TRL's SFTTrainer")  # it reads the weight alone
        except ConfigError as error:
            raise ConfigError(f"models.{name}.{error}") from None
    use_threads(threads, [base.model])
    with tempfile.TemporaryDirectory() as scratch:
        arguments.output_dir = scratch
        trainer = trl.SFTTrainer(
            model=base.model,
            args=arguments,
            train_dataset=rows,
            processing_class=tokenizer,
        )
        trainer.train()
    base.causal.config, base.causal.generation_config = settings, generation
    trained = trainer.accelerator.unwrap_model(trainer.model)
    if model.lora is not None:
        trained = merged(trained, _ADAPTER)
    save_model(trained, out / name)
    save_tokenizer(tokenizer, out / name)
    copy_processors(model.path, out / name)
    return out / name
