"""`agent.json`: an exported agent's settings besides weights and tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from colearn.config import SamplingSettings
from colearn.errors import ConfigError
from colearn.text.masking import masked_settings

MANIFEST = "agent.json"


class AgentManifest(BaseModel):
    """How an exported agent is spoken to; the trainer's own words for the same settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    agent: str
    task: str
    task_settings: Annotated[dict[str, Any], AfterValidator(masked_settings)] = {}
    """Settings of the task; their secrets are masked."""
    algorithm: str
    system: str | None = None
    """The role prompt, before everything else in the history."""
    chat: Literal["auto", "plain"] = "auto"
    """`auto`: the tokenizer's own chat template. `plain`: it had none in training; the template
    that the export wrote spells the same tokens."""
    window: int | None = None
    """C: the most recent key/value pairs kept at the start of a turn; None keeps all."""
    sampling: SamplingSettings = SamplingSettings()
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Type of the merged weights; for an adapter, the type in which its base computed."""
    weights: Literal["merged", "adapter"]
    base: str | None = None
    """Path or hub name of the base model, where `weights` is an adapter on it."""

    def write(self, folder: Path) -> None:
        text = self.model_dump_json(indent=1) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: Path) -> AgentManifest:
    """The manifest of an exported agent.

    Errors: ConfigError, one line, where `folder` is no exported agent or the file is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ConfigError(
            f"{folder}: no exported agent here (no {MANIFEST}); make one with: "
            "colearn export RUN --to DIR, and give DIR/AGENT"
        )
    try:
        return AgentManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{path}: {where}: {first['msg']}; export the agent again") from None
