"""Trainable network: a base or one adapter on a base, with an optional value head."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import pstdev

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from colearn.contract.rows import Outputs, RowBatch
from colearn.errors import ConfigError, reason_of

from .base import Base
from .logits import chosen_logprobs
from .tree_mask import TreeMask

HEAD = "value_head.safetensors"
"""A value head's file in the folder of a saved critic."""
_HEAD = "head."
"""Prefix of the value head's names in `trained` and `state`."""
_LEAST_SPREAD = 1e-3
"""Minimum standard deviation used for rescaling, in units of the task's reward."""


def is_of_head(name: str) -> bool:
    """Whether a name of `Network.trained` or `state` belongs to the value head."""
    return name.startswith(_HEAD)


class Network(nn.Module):
    """Teacher-forced forward pass over packed rows: log-probabilities at actions, values at marked
    tokens.

    If `adapter` is None, all weights of the base are trained; otherwise only the named adapter is
    trained. With `checkpointing`, a training pass saves only the inputs of layers and recomputes
    everything else in the backward pass.
    """

    def __init__(
        self,
        base: Base,
        adapter: str | None = None,
        head: ValueHead | None = None,
        *,
        checkpointing: bool = False,
    ):
        super().__init__()
        self.base = base
        self.adapter = adapter
        self.head = head
        self.checkpointing = checkpointing

    def trained(self) -> dict[str, nn.Parameter]:
        """Trained parameters by name, in the same order in every process."""
        if self.adapter is None:
            weights = self.base.causal.named_parameters()
            parameters = {f"model.{name}": parameter for name, parameter in weights}
        else:
            parameters = {
                f"adapter.{name}": parameter
                for name, parameter in self.base.adapter_parameters(self.adapter).items()
            }
        if self.head is not None:
            head = self.head.named_parameters()
            parameters |= {f"{_HEAD}{name}": parameter for name, parameter in head}
        return parameters

    def state(self) -> dict[str, Tensor]:
        """Tensors to save in a checkpoint: the trained parameters and the value head's scale."""
        tensors: dict[str, Tensor] = {**self.trained()}
        if self.head is not None:
            tensors[f"{_HEAD}scale"] = self.head.scale
        return tensors

    def forward(
        self, batch: RowBatch, *, entropy: bool = False, reference: bool = False
    ) -> Outputs:
        """Compute outputs in the order of the batch's rows; `reference` disables adapters.

        Errors: ValueError for marks without a value head.
        """
        with self.base.using(None if reference else self.adapter):
            hidden = self.base.hidden(
                batch.input_ids,
                position_ids=batch.position_ids if batch.mask is not None else None,
                mask=batch.mask,
                checkpointing=self.checkpointing,
                read=batch.read,
            )
        return self.outputs(hidden, batch, entropy=entropy, reference=reference)

    def outputs(
        self, hidden: Tensor, batch: RowBatch, *, entropy: bool = False, reference: bool = False
    ) -> Outputs:
        """Compute the outputs of `forward` from the base's hidden states [B, T, D]."""
        states = hidden[batch.token_rows, batch.token_columns]
        values = hidden.new_zeros(0, dtype=torch.float32)
        if len(batch.mark_rows):
            if self.head is None:
                raise ValueError("these rows ask for values, but the network has no value head")
            values = self.head(hidden[batch.mark_rows, batch.mark_columns])
            if batch.mark_places is not None:
                values = values[batch.mark_places]
            if batch.baselined:
                values = values + batch.per_action("baselines")
        hot = any(row.temperature != 1.0 for row in batch.rows)
        logprobs, entropies = self._logprobs(
            states, batch.token_ids, batch.temperatures if hot else None, entropy, reference
        )
        if batch.token_places is not None:
            logprobs = logprobs[batch.token_places]
            entropies = None if entropies is None else entropies[batch.token_places]
        return Outputs(logprobs=logprobs, entropy=entropies, values=values)

    def _logprobs(
        self,
        states: Tensor,
        ids: Tensor,
        temperatures: Tensor | None,
        entropy: bool,
        reference: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Return log-probabilities [N] and entropies [N]. If `temperatures` is None, every
        temperature is 1."""
        if not len(ids):
            empty = states.new_zeros(0, dtype=torch.float32)
            return empty, empty if entropy else None

        adapter = None if reference else self.adapter

        def score(part: slice) -> tuple[Tensor, Tensor]:
            with self.base.using(adapter) if self.base.head_adapted else nullcontext():
                logits = self.base.logits(states[part])
            if temperatures is not None:
                logits = logits / temperatures[part, None]
            if not entropy:
                chosen = chosen_logprobs(logits, ids[part])
                return chosen, chosen.detach()
            normaliser = logits.logsumexp(-1)
            chosen = logits.gather(-1, ids[part, None]).squeeze(-1) - normaliser
            return chosen, normaliser - (logits.softmax(-1) * logits).sum(-1)

        block = max(1, self.base.logits_at_once // self.base.config.vocab_size)
        slices = [slice(start, start + block) for start in range(0, len(ids), block)]
        if len(slices) > 1 and torch.is_grad_enabled():  # the backward pass recomputes each block
            parts = [checkpoint(score, part, use_reentrant=False) for part in slices]
        else:
            parts = [score(part) for part in slices]
        logprobs = torch.cat([chosen for chosen, _ in parts])
        return logprobs, torch.cat([spread for _, spread in parts]) if entropy else None


def joint_outputs(
    networks: Sequence[Network], batches: Sequence[RowBatch], entropies: Sequence[bool]
) -> list[Outputs]:
    """Compute the outputs of several networks, each on its batch and with entropies or without. The
    networks are adapters of one base, whose layers run once over the rows of all batches."""
    base = networks[0].base
    shapes = [batch.input_ids.shape for batch in batches]
    width = max(own for _, own in shapes)
    adapters: list[str | None] = []
    read: list[Tensor] = []
    read_rows: list[int] = []
    for network, batch, (size, own) in zip(networks, batches, shapes, strict=True):
        first = len(adapters)
        adapters += [network.adapter] * size
        read.append((first + batch.read // own) * width + batch.read % own)
        read_rows += [first] * len(batch.read)

    def padded(tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat([nn.functional.pad(one, (0, width - one.shape[1])) for one in tensors])

    positions, mask = None, None
    if any(batch.mask is not None for batch in batches):
        positions = padded([batch.position_ids for batch in batches])
        distinct = [{row.passage: row.pieces for row in batch.rows} for batch in batches]
        mask = TreeMask(tuple(pieces for one in distinct for pieces in one.values()), width)
    with base.using(adapters):
        hidden = base.hidden(
            padded([batch.input_ids for batch in batches]),
            position_ids=positions,
            mask=mask,
            checkpointing=networks[0].checkpointing,
            read=torch.cat(read),
            read_rows=read_rows,
        )
    return [
        network.outputs(states, batch, entropy=entropy)
        for network, batch, entropy, states in zip(
            networks, batches, entropies, hidden.split([size for size, _ in shapes]), strict=True
        )
    ]


class ValueHead(nn.Module):
    """A scalar head in float32. Before training, its output is the centre of the observed returns,
    or 0 if no returns have been observed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1, dtype=torch.float32)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.register_buffer("scale", torch.tensor([0.0, 1.0, 0.0]))
        self.scale: Tensor
        """Centre and standard deviation of observed returns, and the number of `observe` calls."""

    def forward(self, hidden: Tensor) -> Tensor:
        """Values [M] of hidden states [M, D]."""
        with torch.autocast(hidden.device.type, enabled=False):
            values: Tensor = self.linear(hidden.float()).squeeze(-1)
            return self.scale[0] + self.scale[1] * values

    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Update the scale with these returns. The n-th call has weight max(1/n, 1/20). `centre` is
        an expectile of these returns (for example the mean) that V should predict."""
        before, deviation, calls = self.scale.tolist()
        part = max(1.0 / (calls + 1.0), 0.05)
        spread = max(pstdev(returns), _LEAST_SPREAD)
        updated = before + part * (centre - before), deviation + part * (spread - deviation)
        self.scale.copy_(self.scale.new_tensor([*updated, calls + 1]))

    def shift(self, by: float) -> None:
        """Add a constant to all values."""
        self.scale[0] += by

    def load(self, folder: Path, field: str) -> None:
        """Read the value head of a saved critic.

        Errors: ConfigError naming `field` for a damaged file or a different width.
        """
        path = folder / HEAD
        try:
            self.load_state_dict(load_file(path))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise ConfigError(
                f"{field}: {path}: {reason_of(error)}; export it again with: colearn export RUN "
                "--critics --to DIR"
            ) from None
