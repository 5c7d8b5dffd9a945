"""An engine of tokens in one file: a second copy of the model, one row and one token at a time."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache

from colearn.contract import (
    GeneratorKind,
    Sampling,
    TokenAnswer,
    TokenEngine,
    TokenRequest,
    WeightUpdate,
)
from colearn.engines import checked_engine
from colearn.engines.checked_engine import CheckedEngine
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import plain_weights, weight_update
from colearn.rollout.agents import AgentSpec


@pytest.fixture(scope="module", autouse=True)
def short_probes() -> Iterator[None]:
    """Checks of parity draw four tokens: a fake draws one row and one token at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked_engine, "_PROBE_ACTION", 4)
        patch.setattr(checked_engine, "_PROBE_SEEDS", (1,))
        yield


class FakeEngine(CheckedEngine):
    name = "fake"

    def __init__(self, base: Base, roles: Mapping[str, AgentSpec], max_length: int) -> None:
        super().__init__(base, roles)
        self.tokenizer = next(iter(roles.values())).chat.tokenizer
        with torch.random.fork_rng():
            self.copy = Base(type(base.causal)(copy.deepcopy(base.causal.config)))
        for name in base.adapters:
            self.copy._inject(name, copy.deepcopy(base.model.peft_config[name]))
            self.copy.adapters.append(name)
        self._longest = max_length
        self.write([weight_update(Network(base, name), 0) for name in (None, *base.adapters)])

    @property
    def max_length(self) -> int:
        return self._longest

    @torch.no_grad()
    def write(self, updates: Sequence[WeightUpdate]) -> None:
        from peft import set_peft_model_state_dict

        own = plain_weights(self.copy)
        for update in updates:
            for name, tensor in (update.full or {}).items():
                own[name].copy_(tensor)
            for name, tensors in update.adapters.items():
                set_peft_model_state_dict(self.copy.model, dict(tensors), adapter_name=name)

    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: TokenRequest) -> TokenAnswer:
        with self.copy.using(self.adapter(request.agent)):
            prompt, (seed,) = request.history.ids.tolist(), request.seeds
            tokens, logprobs = drawn_action(
                self.copy, self.tokenizer, prompt, request.sampling, seed, self.end_ids(request)
            )
        return self.answer(request, tokens, logprobs)


@torch.inference_mode()
def drawn_action(
    base: Base,
    tokenizer: Any,
    prompt: Sequence[int],
    sampling: Sampling,
    seed: int,
    end_ids: Collection[int],
) -> tuple[list[int], list[float]]:
    """The tokens of an action and their log-probabilities."""
    rng = torch.Generator().manual_seed(seed)
    tokens: list[int] = []
    logprobs: list[float] = []
    cache = DynamicCache()
    while len(tokens) < sampling.max_tokens:
        ids = torch.tensor([[tokens[-1]] if tokens else [*prompt]])
        hidden = base.causal.get_decoder()(
            input_ids=ids, use_cache=True, **{base.cache_argument: cache}
        )
        logits = base.logits(hidden.last_hidden_state[0, -1])
        scores = (logits / (sampling.temperature or 1.0)).log_softmax(-1)
        tokens.append(_drawn(scores, sampling, rng))
        logprobs.append(float(scores[tokens[-1]]))
        text = tokenizer.decode(tokens) if sampling.stop else ""
        if tokens[-1] in end_ids or any(stop in text for stop in sampling.stop):
            break
    return tokens, logprobs


def _drawn(scores: Tensor, sampling: Sampling, rng: torch.Generator) -> int:
    if sampling.temperature == 0:
        return int(scores.argmax())
    shares, order = scores.exp().sort(descending=True)
    if sampling.top_k is not None:
        shares[sampling.top_k :] = 0
    shares[shares.cumsum(0) - shares >= sampling.top_p] = 0
    return int(order[torch.multinomial(shares, 1, generator=rng)])


@dataclass(frozen=True, kw_only=True)
class Fake(GeneratorKind):
    max_length: int = 4096

    def build(self, base: Base, roles: Mapping[str, AgentSpec]) -> TokenEngine:
        for agent, role in roles.items():
            FakeEngine.check_role(agent, role)
        return FakeEngine(base, roles, self.max_length).checked()
