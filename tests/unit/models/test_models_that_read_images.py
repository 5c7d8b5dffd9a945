"""A language model inside a model that also reads images: its config is nested and its wrapper has
no `vocab_size`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.contract.rows import Mark, Piece, Row
from colearn.engines.transformers import TransformersEngine
from colearn.engines.vllm_weights import write_model
from colearn.models.base import Base
from colearn.models.load import check_model
from colearn.models.logit_check import check_logits
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec, ChatFormat
from colearn.training.learners.next_tokens import next_probabilities
from tests.helpers.tiny import byte_tokenizer, model_that_reads_images

IDS = (5, 80, 81, 82)


@pytest.fixture
def base() -> Base:
    model = model_that_reads_images()
    assert not hasattr(model.config, "vocab_size")
    return Base(model)


def test_its_logits_are_those_of_its_own_forward_pass(base: Base) -> None:
    check_logits(base)


def test_every_next_token_has_the_probability_of_its_own_forward_pass(base: Base) -> None:
    words = base.config.vocab_size
    row = Row(
        tokens=IDS,
        pieces=(Piece(start=0, end=4, parent=-1, first_position=0, visible_from=0),),
        marks=(Mark(node=7, index=3),),
    )
    (table,) = next_probabilities(
        Network(base), [row], [{7: range(words)}], temperatures=[1.0], token_budget=64
    )
    with torch.no_grad():
        own = base.causal(input_ids=torch.tensor([IDS])).logits[0, -1].double().softmax(-1)
    assert table[7][0] == pytest.approx(own.numpy(), abs=1e-6)


def test_its_folder_is_a_model_of_a_run(base: Base, tmp_path: Path) -> None:
    base.causal.save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    check_model(str(tmp_path), field="models.ada.path")


def test_a_folder_for_vllm_is_the_whole_model(base: Base, tmp_path: Path) -> None:
    write_model(tmp_path, base, byte_tokenizer())
    model, loading = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(model) is type(base.causal)
    assert not any(loading.values()), loading


def test_an_engine_draws_from_its_own_forward_pass(base: Base) -> None:
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    sampling = Sampling(max_tokens=6)
    engine = TransformersEngine(
        base, {"ada": AgentSpec(adapter=None, chat=chat, sampling=sampling)}
    )
    history = TokenHistory().observe(IDS, None)
    asked = TokenRequest(agent="ada", history=history, sampling=sampling, seeds=(3,))
    ((drawn,),) = engine.generate([asked])
    tokens = drawn.action.tokens
    with torch.no_grad():
        logits = base.causal(input_ids=torch.tensor([[*IDS, *tokens]])).logits[0].log_softmax(-1)
    own = [logits[3 + place, token].item() for place, token in enumerate(tokens)]
    assert drawn.action.logprobs == pytest.approx(own, abs=1e-5)
