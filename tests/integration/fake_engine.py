"""An engine of tokens in one file: a second copy of the model, one row and one token at a time."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache

from colearn.agents import Voice
from colearn.contract import Generator, GeneratorKind, Sampling, WeightUpdate
from colearn.generate.token_engine import TokenAnswer, TokenEngine, TokenRequest
from colearn.generate.token_generator import TokenGenerator, check_roles
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import plain_weights, weight_update


class FakeEngine(TokenEngine):
    name = "fake"

    def __init__(self, base: Base, roles: Mapping[str, Voice], max_length: int) -> None:
        self.tokenizer = next(iter(roles.values())).chat.tokenizer
        with torch.random.fork_rng():
            self.base = Base(type(base.causal)(copy.deepcopy(base.causal.config)))
        for name in base.adapters:
            self.base._inject(name, copy.deepcopy(base.model.peft_config[name]))
            self.base.adapters.append(name)
        self._longest = max_length
        self.load([weight_update(Network(base, name), 0) for name in (None, *base.adapters)])

    @property
    def max_length(self) -> int:
        return self._longest

    @torch.no_grad()
    def load(self, updates: Sequence[WeightUpdate]) -> None:
        from peft import set_peft_model_state_dict

        own = plain_weights(self.base)
        for update in updates:
            for name, tensor in (update.full or {}).items():
                own[name].copy_(tensor)
            for name, tensors in update.adapters.items():
                set_peft_model_state_dict(self.base.model, dict(tensors), adapter_name=name)

    def generate(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        return [self._answer(request) for request in requests]

    def _hidden(self, ids: Tensor, cache: DynamicCache) -> Tensor:
        states: Tensor = self.base.causal.get_decoder()(
            input_ids=ids, use_cache=True, **{self.base.cache_argument: cache}
        ).last_hidden_state
        return states

    @torch.inference_mode()
    def _answer(self, request: TokenRequest) -> TokenAnswer:
        rng = torch.Generator().manual_seed(request.seed)
        tokens: list[int] = []
        logprobs: list[float] = []
        cache = DynamicCache()
        with self.base.using(request.adapter):
            while len(tokens) < request.sampling.max_tokens:
                ids = torch.tensor([[tokens[-1]] if tokens else request.prompt])
                logits = self.base.logits(self._hidden(ids, cache)[0, -1])
                scores = (logits / (request.sampling.temperature or 1.0)).log_softmax(-1)
                tokens.append(_drawn(scores, request.sampling, rng))
                logprobs.append(float(scores[tokens[-1]]))
                text = self.tokenizer.decode(tokens) if request.sampling.stop else ""
                if tokens[-1] in request.end_ids or any(s in text for s in request.sampling.stop):
                    break
        return TokenAnswer(tokens=tuple(tokens), logprobs=tuple(logprobs))


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

    def build(self, base: Base, roles: Mapping[str, Voice]) -> Generator:
        check_roles(FakeEngine, roles)
        return TokenGenerator(base, roles, FakeEngine(base, roles, self.max_length))
