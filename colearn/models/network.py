"""What a learner trains: a base, one adapter of it or all of it, and perhaps a value head."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from colearn.contract.rows import Outputs, RowBatch

from .base import Base

_LOGITS_AT_ONCE = 2**27
"""Elements of one block of logits; longer batches compute them in blocks, again in backward."""


_LEAST_SPREAD = 1e-3
"""Of returns, in the task's rewards: equal ones give the head no unit to speak in."""


class ValueHead(nn.Module):
    """A scalar head in float32. It starts at V = 0, or at the centre of what it has observed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1, dtype=torch.float32)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.register_buffer("scale", torch.tensor([0.0, 1.0, 0.0]))
        self.scale: Tensor
        """Centre and deviation of the returns seen, and in how many calls of `observe`."""

    def forward(self, hidden: Tensor) -> Tensor:
        """[M, D] to [M]."""
        with torch.autocast(hidden.device.type, enabled=False):
            values: Tensor = self.linear(hidden.float()).squeeze(-1)
            return self.scale[0] + self.scale[1] * values

    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Move the scale to these returns: wholly at first, by a twentieth in the long run. The
        `centre` is what V should be of them on the whole: their mean, or another expectile."""
        before, deviation, calls = self.scale.tolist()
        part = max(1.0 / (calls + 1.0), 0.05)
        spread = max(pstdev(returns), _LEAST_SPREAD)
        found = before + part * (centre - before), deviation + part * (spread - deviation)
        self.scale.copy_(self.scale.new_tensor([*found, calls + 1]))


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
