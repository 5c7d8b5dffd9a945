"""The model card's commands, where settings change them."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.config import SamplingSettings
from colearn.deploy.export import AgentManifest
from colearn.deploy.export.usage import usage

CARD = AgentManifest(agent="ada", task="notes", algorithm="collm_cc", weights="merged")


def told(
    *, exact: bool = True, rank: int | None = None, needs_5: bool = False, **changes: Any
) -> str:
    fields: dict[str, Any] = {
        "agent": "ada",
        "task": "notes",
        "algorithm": "collm_cc",
        "weights": "merged",
    }
    return usage(AgentManifest(**fields | changes), rank=rank, exact=exact, needs_5=needs_5)


def test_a_greedy_agent_is_greedy_in_vllm() -> None:
    text = told(sampling=SamplingSettings(temperature=0.0))
    assert "--override-generation-config '{\"temperature\": 0}'" in text
    assert "--override-generation-config" not in told()


def test_vllm_is_given_the_number_type() -> None:
    assert "--dtype bfloat16" in told(dtype="bfloat16")


@pytest.mark.parametrize(("rank", "limit"), [(1, 1), (4, 8), (16, 16), (24, 32), (512, 512)])
def test_vllm_is_given_a_rank_that_it_takes(rank: int, limit: int) -> None:
    text = told(weights="adapter", base="Qwen/Qwen3-0.6B", rank=rank)
    assert f"--max-lora-rank {limit}\n" in text.replace(" \\\n", "\n")
    assert "vllm serve Qwen/Qwen3-0.6B " in text


def test_a_window_that_only_colearn_keeps_is_told() -> None:
    assert "the last 512 tokens" in told(window=512)
    assert "tokens of its history" not in told()


def test_stop_strings_are_told() -> None:
    assert 'end at `["\\n\\n", "you"]`' in told(sampling=SamplingSettings(stop=("\n\n", "you")))


def test_tags_that_decoders_leave_out_are_told_and_kept() -> None:
    text = usage(CARD, rank=None, exact=True, tags=("<answer>", "</answer>"))
    assert "special tokens (`<answer>`, `</answer>`), which decoders leave out" in text
    assert "skip_special_tokens=False" in text and "skip_special_tokens=True" not in text
    adapter = CARD.model_copy(update={"weights": "adapter", "base": "a/b"})
    assert "skip_special_tokens=True" not in usage(adapter, rank=4, exact=True, tags=("[TOOL]",))
    assert "special tokens (" not in told() and "skip_special_tokens=True" in told()


def test_a_tokenizer_that_splits_conversations_otherwise_is_told() -> None:
    assert "other tokens than the turns one by one" in told(exact=False)
    assert "other tokens" not in told()


def test_the_card_says_which_versions_of_transformers_read_the_folder() -> None:
    assert "With transformers 4 or 5:\n" in told()
    assert "With transformers 5 (version 4 has no names for" in told(needs_5=True)
