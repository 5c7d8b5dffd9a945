"""`agent.json`: the settings of an exported agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from colearn.config import SamplingSettings
from colearn.errors import ConfigError
from colearn.text.masking import masked_settings

MANIFEST = "agent.json"
Dtype = Literal["float32", "bfloat16", "float16"]


class AgentManifest(BaseModel):
    """Settings for prompting and sampling an exported agent. Their names are the same as in the
    training config."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    agent: str
    task: str
    task_settings: Annotated[dict[str, Any], AfterValidator(masked_settings)] = {}
    """Settings of the task, with secrets masked."""
    algorithm: str
    system: str | None = None
    """The role prompt, which precedes everything else in the history."""
    chat: Literal["auto", "plain"] = "auto"
    """`auto`: the agent was trained with the tokenizer's chat template. `plain`: the tokenizer had
    no chat template in training; the export writes a template that produces the same tokens."""
    window: int | None = None
    """C, the number of most recent key/value pairs kept at the start of a turn; None keeps all."""
    sampling: SamplingSettings = SamplingSettings()
    dtype: Dtype = "float32"
    """Type of the merged weights; for an adapter, the base's compute type in training."""
    weights: Literal["merged", "adapter"]
    base: str | None = None
    """Path or hub name of the base model if `weights` is an adapter."""

    def write(self, folder: Path) -> None:
        text = self.model_dump_json(indent=1) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: Path) -> AgentManifest:
    """The manifest of an exported agent.

    Errors: ConfigError, one line, if `folder` is not an exported agent or the file is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        agents = sorted(str(one.parent) for one in folder.glob(f"*/{MANIFEST}"))
        if agents:
            raise ConfigError(f"{folder}: holds exported agents; give one of {', '.join(agents)}")
        raise ConfigError(
            f"{folder}: no exported agent here (no {MANIFEST}); make one with: "
            "colearn export RUN --to DIR, and give DIR/AGENT"
        )
    try:
        return AgentManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{path}: {location}: {first['msg']}; export the agent again") from None
