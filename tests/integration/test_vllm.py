"""vLLM, an engine of tokens: what every engine passes, its prefix cache, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest
import torch
from asking import token_request
from engine_cases import *  # noqa: F403 - the tests of every engine, with the `kind` below
from engine_cases import TOLERANCE, Setup
from tiny import register
from vllm_cases import byte_tokenizer, qwen

from colearn.config import load_config
from colearn.contract import GeneratorKind, Learner, Sampling
from colearn.engines.kinds import VLLM
from colearn.errors import ConfigError, MissingExtra
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec, ChatFormat

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="needs the vllm extra, in an environment of its own")


@pytest.fixture(scope="module")
def kind() -> GeneratorKind:
    return VLLM()


def test_a_second_turn_prefills_only_new_blocks(setup: Setup) -> None:
    generator, chat, block = setup.generator, setup.voices["hot"].chat, 32
    setup.generator.llm.reset_prefix_cache()
    before = generator.prefilled_tokens
    opening = chat.open("A long history. " * 20).tokens
    request = token_request(setup.voices, "hot", opening, (1, 2, 3, 4))
    (first_turn,) = generator.generate([request])
    forked = generator.prefilled_tokens - before
    assert len(opening) <= forked <= len(opening) + 3 * block, "forks share the prefill"
    more = chat.continuation("and then?", first_turn[0].action).tokens
    before = generator.prefilled_tokens
    again = token_request(setup.voices, "hot", more, (5,), continues=first_turn[0].history)
    ((sampled,),) = generator.generate([again])
    new = len(first_turn[0].action.tokens) + len(more)
    assert generator.prefilled_tokens - before <= new + block
    whole = len(first_turn[0].history) + len(more) + len(sampled.action.tokens)
    assert len(sampled.history) == whole


@pytest.mark.parametrize(
    ("window", "sampling", "key"),
    [
        (64, Sampling(), "agents.ann.window"),
        (None, Sampling(temperature=0.001), "agents.ann.sampling.temperature"),
    ],
)
def test_what_vllm_cannot_honour_is_one_line(
    window: int | None, sampling: Sampling, key: str
) -> None:
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    voice = AgentSpec(adapter=None, chat=chat, sampling=sampling, window=window)
    with pytest.raises(ConfigError, match="transformers") as error:
        VLLM().build(Base(qwen()), {"ann": voice})
    assert str(error.value).startswith(key) and "\n" not in str(error.value)


def test_without_vllm_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    voice = AgentSpec(adapter=None, chat=chat, sampling=Sampling())
    with pytest.raises(MissingExtra, match="vllm"):
        VLLM().build(Base(qwen()), {"ann": voice})


def weights_of(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in learner.weights().items()}


@pytest.mark.parametrize("lora", [False, True])
def test_two_iterations_train_on_fresh_weights(
    lora: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from colearn.training.loop import Experiment

    register(monkeypatch, notes="tiny:Notes")  # it pays different texts differently
    folder = tmp_path / "model"
    qwen().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    model: dict[str, Any] = {"path": str(folder), "learning_rate": 1e-2}
    if lora:
        model["lora"] = {"rank": 4, "alpha": 16}
    config = load_config(
        {
            "task": {"name": "notes", "horizon": 2},
            "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
            "models": {"*": model},
            "agents": {"*": {"chat": "plain", "sampling": {"max_tokens": 12}}},
            "train": {"episodes": 1, "environment_steps": 1000},
            "evaluation": {"episodes": 1},
            "run": {"generator": "vllm", "device": "cpu"},
        }
    )
    experiment = Experiment(config, tmp_path / "run")
    learners = experiment.team.learners.values()
    try:
        for _ in range(2):
            before = [weights_of(learner) for learner in learners]
            metrics = experiment.step()
            gaps = [value for key, value in metrics.items() if key.endswith("/logprob_mismatch")]
            assert len(gaps) == len(experiment.team.run.config.models)
            assert max(gaps) < TOLERANCE
            for old, learner in zip(before, learners, strict=True):
                now = weights_of(learner)
                assert any(not torch.equal(now[name], tensor) for name, tensor in old.items())
    finally:
        for generator in experiment.team.engines:
            generator.close()
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2]
