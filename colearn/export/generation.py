"""Writes generation_config.json, an agent's sampling settings for transformers and vLLM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.config import SamplingSettings

if TYPE_CHECKING:
    from colearn.agents import ChatFormat


def save_generation_config(sampling: SamplingSettings, chat: ChatFormat, folder: Path) -> None:
    """Write `folder/generation_config.json`.

    For greedy sampling, the file contains no temperature, as transformers requires. Stop strings
    are stored only in agent.json. If generation_config.json contained stop strings, `generate`
    would require the tokenizer as an argument.
    """
    from transformers import GenerationConfig

    drawn: dict[str, Any] = {"do_sample": False}
    if sampling.temperature > 0:
        drawn = {
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
        **drawn,
    ).save_pretrained(folder)
