"""What a learner trains: a base, one adapter of it or all of it, and perhaps a value head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from colearn.contract.rows import Outputs, RowBatch

from .base import Base
from .value_head import ValueHead

_LOGITS_AT_ONCE = 2**27
"""Elements of one block of logits; longer batches compute them in blocks, again in backward."""


class Network(nn.Module):
    """Teacher-forced forward pass over packed rows: log-probabilities at actions, V at marks.

    `adapter` None trains every weight of the base; a name trains that adapter alone.
    """

    def __init__(self, base: Base, adapter: str | None = None, head: ValueHead | None = None):
        super().__init__()
        self.base = base
        self.adapter = adapter
        self.head = head

    def trained(self) -> dict[str, nn.Parameter]:
        """Parameters that an optimiser steps, by name, the same in every process."""
        if self.adapter is None:
            weights = self.base.causal.named_parameters()
            found = {f"model.{name}": parameter for name, parameter in weights}
        else:
            found = {
                f"adapter.{name}": parameter
                for name, parameter in self.base.adapter_parameters(self.adapter).items()
            }
        if self.head is not None:
            found |= {f"head.{name}": parameter for name, parameter in self.head.named_parameters()}
        return found

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint holds: the trained parameters, and the value head's scale."""
        found: dict[str, Tensor] = {**self.trained()}
        if self.head is not None:
            found["head.scale"] = self.head.scale
        return found

    def forward(
        self, batch: RowBatch, *, entropy: bool = False, reference: bool = False
    ) -> Outputs:
        """Errors: ValueError for marks without a value head. `reference`: adapters off."""
        with self.base.using(None if reference else self.adapter):
            hidden = self.base.hidden(
                batch.input_ids,
                position_ids=batch.position_ids if batch.mask is not None else None,
                mask=batch.mask,
            )
        states = hidden[batch.token_rows, batch.token_columns]
        values = hidden.new_zeros(0, dtype=torch.float32)
        if len(batch.mark_rows):
            if self.head is None:
                raise ValueError("these rows ask for values, but the network has no value head")
            values = self.head(hidden[batch.mark_rows, batch.mark_columns])
            if batch.mark_places is not None:
                values = values[batch.mark_places]
        logprobs, entropies = self._logprobs(
            states, batch.token_ids, batch.temperatures, entropy, reference
        )
        if batch.token_places is not None:
            logprobs = logprobs[batch.token_places]
            entropies = None if entropies is None else entropies[batch.token_places]
        return Outputs(logprobs=logprobs, entropy=entropies, values=values)

    def _logprobs(
        self, states: Tensor, ids: Tensor, temperatures: Tensor, entropy: bool, reference: bool
    ) -> tuple[Tensor, Tensor | None]:
        block = max(1, _LOGITS_AT_ONCE // self.base.config.get_text_config().vocab_size)
        if not len(ids):
            empty = states.new_zeros(0, dtype=torch.float32)
            return empty, empty if entropy else None

        def score(part: Tensor, target: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
            with self.base.using(None if reference else self.adapter):
                logits = self.base.logits(part) / temperature[:, None]
            normaliser = logits.logsumexp(-1)
            chosen = logits.gather(-1, target[:, None]).squeeze(-1) - normaliser
            if not entropy:
                return chosen, chosen.detach()
            return chosen, normaliser - (logits.softmax(-1) * logits).sum(-1)

        parts = []
        for start in range(0, len(ids), block):
            inputs = (
                states[start : start + block],
                ids[start : start + block],
                temperatures[start : start + block],
            )
            if len(ids) > block and torch.is_grad_enabled():
                parts.append(checkpoint(score, *inputs, use_reentrant=False))
            else:
                parts.append(score(*inputs))
        logprobs = torch.cat([chosen for chosen, _ in parts])
        return logprobs, torch.cat([spread for _, spread in parts]) if entropy else None
