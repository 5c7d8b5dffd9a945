"""A tiny model, a byte tokenizer, and three turns of every agent, for the tests of vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from asking import token_request

from colearn.contract.rows import Row
from colearn.contract.types import Node, Observation, Tree
from colearn.engines.checked_engine import CheckedEngine
from colearn.engines.transformers import TransformersEngine
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.packed_rows import actor_rows

TEXTS = {
    "hot": ("Once upon a time", "go on, please", "and?"),
    "cut": ("x", "a much longer observation than the one before it", "stop here now"),
    "cold": ("The quick brown fox jumps over the lazy dog. " * 3, "again", "more"),
}


def byte_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate((*alphabet, "<pad>", "<end>"))}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>")


def qwen(seed: int = 0, *, tied: bool = False) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=258,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=4096,
        initializer_range=0.1,  # sharp enough that a wrong position or weight shows
        tie_word_embeddings=tied,
        eos_token_id=257,
    )
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(config)


def play(
    generator: TransformersEngine | CheckedEngine,
    voices: Mapping[str, AgentSpec],
    *,
    forks: int = 1,
    greedy: bool = False,
) -> dict[str, Tree[Any]]:
    """Three turns of every agent, all of a turn in one call; the first turn forks."""
    nodes: dict[str, list[Node[Any]]] = {}
    live: dict[str, list[tuple[int, Any]]] = {}
    for agent, voice in voices.items():
        root = voice.chat.open(TEXTS[agent][0])
        nodes[agent] = [Node(index=0, parent=None, path=(), state=None, observations={agent: root})]
        live[agent] = [(0, None)]
    for turn in range(3):
        seeds = tuple(range(100 * turn, 100 * turn + (forks if turn == 0 else 1)))
        places = [(agent, index, history) for agent in voices for index, history in live[agent]]
        requests = [
            token_request(
                voices,
                agent,
                nodes[agent][index].observations[agent].tokens,
                seeds,
                continues=history,
                greedy=greedy,
            )
            for agent, index, history in places
        ]
        live = {agent: [] for agent in voices}
        answers = generator.generate(requests)
        for (agent, parent, _), draws in zip(places, answers, strict=True):
            for child, sampled in enumerate(draws):
                index = len(nodes[agent])
                seen: dict[str, Observation] = {}
                if turn < 2:
                    text = TEXTS[agent][turn + 1]
                    seen[agent] = voices[agent].chat.continuation(text, sampled.action)
                nodes[agent].append(
                    Node(
                        index=index,
                        parent=parent,
                        path=(*nodes[agent][parent].path, child),
                        state=None,
                        observations=seen,
                        actions={agent: sampled.action},
                    )
                )
                live[agent].append((index, sampled.history))
    return {
        agent: Tree(item=None, episode=0, agents=(agent,), nodes=tuple(grown))
        for agent, grown in nodes.items()
    }


def rows_of(trees: Mapping[str, Tree[Any]], voices: Mapping[str, AgentSpec]) -> dict[str, Row]:
    rows = {}
    for agent, tree in trees.items():
        (rows[agent],) = actor_rows(tree, agent, temperature=voices[agent].sampling.temperature)
    return rows
