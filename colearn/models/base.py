"""One set of base weights in memory: backbone and head, called apart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from colearn.contract.rows import Visibility
from colearn.errors import ConfigError

from .adapters import Adapted
from .tree_attention import NAME, by_blocks
from .tree_mask import TreeMask

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Base(Adapted):
    """A causal language model as a backbone, a head and switchable adapters.

    The backbone and the head are called apart: a critic never runs the head, and an actor runs it
    at its action tokens only. `compute` is the autocast type; trained weights stay float32.
    """

    def __init__(self, model: PreTrainedModel, compute: torch.dtype = torch.float32) -> None:
        super().__init__(model)
        self.compute = compute
        if model.config._attn_implementation == "sdpa":
            model.set_attn_implementation(NAME)
        self.revision = 0
        """Times that a learner has written to the weights or an adapter: fused optimisers leave
        torch's own count of writes alone."""
        self.in_use = threading.RLock()
        """Held while a generator runs: which adapter is on belongs to one thread at a time."""

    @property
    def config(self) -> Any:
        """Of the text model, where the model reads images too."""
        return self._causal.config.get_text_config()

    @property
    def positions(self) -> int | None:
        """Tokens that it was made to read at most, where its config says so."""
        return getattr(self.config, "max_position_embeddings", None)

    @property
    def device(self) -> torch.device:
        return self._causal.device

    def hidden(
        self,
        input_ids: Tensor,
        *,
        position_ids: Tensor | None = None,
        mask: Tensor | Visibility | None = None,
        cache: Any = None,
    ) -> Tensor:
        """[B, T, D] last hidden states. `mask` is [B, 1, T, keys] bool over the cache's keys, or
        the pattern of packed trees."""
        with self._autocast():
            states: Tensor = self._causal.get_decoder()(
                input_ids=input_ids,
                attention_mask=None if mask is None else self._masks(mask, position_ids, cache),
                position_ids=position_ids,
                past_key_values=cache,
                use_cache=cache is not None,
            ).last_hidden_state
        return states

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., V] float32 logits of hidden states, with the model's own scaling."""
        with self._autocast():
            logits: Tensor = self._causal.get_output_embeddings()(hidden)
        logits = logits.float()
        scale = getattr(self.config, "logit_scale", None)  # Cohere
        if scale is not None:
            logits = logits * scale
        divisor = getattr(self.config, "logits_scaling", None)  # Granite
        if divisor is not None:
            logits = logits / divisor
        cap = getattr(self.config, "final_logit_softcapping", None)
        if cap is not None:
            logits = torch.tanh(logits / cap) * cap
        return logits

    def _autocast(self) -> Any:
        return torch.autocast(
            self.device.type, dtype=self.compute, enabled=self.compute != torch.float32
        )

    def _masks(self, mask: Tensor | Visibility, position_ids: Tensor | None, cache: Any) -> Any:
        """The mask in the form the architecture takes: one, or one for each kind of layer."""
        kinds = set(getattr(self.config, "layer_types", None) or ())
        unknown = kinds - {"full_attention", "sliding_attention"}
        if unknown:
            raise ConfigError(
                f"models.path: layers of kind {', '.join(sorted(unknown))} have no key/value "
                "cache that can be forked; use a model with full or sliding attention"
            )
        window = getattr(self.config, "sliding_window", None)
        if not isinstance(mask, Tensor):
            blocks = self._blocks(mask, window)
            if blocks is not None:
                return dict.fromkeys(kinds, blocks) if len(kinds) > 1 else blocks
            mask = mask.dense(self.device)
        if kinds <= {"full_attention"} and (kinds or window is None):
            return self._form(mask)
        assert position_ids is not None and window is not None
        keys = position_ids if cache is None else cache.key_positions()
        near = mask & (position_ids[:, None, :, None] - keys[:, None, None, :] < window)
        if not kinds:  # Mistral, Phi 3, ...: a window on every layer
            return self._form(near)
        return {"full_attention": self._form(mask), "sliding_attention": self._form(near)}

    def _blocks(self, mask: Visibility, window: int | None) -> Tensor | None:
        """A packed tree's attention without a mask, where this model and device can."""
        if not isinstance(mask, TreeMask) or self._causal.config._attn_implementation != NAME:
            return None
        if window is not None and mask.longest > window:
            return None
        heads = self.config.num_attention_heads
        size = getattr(self.config, "head_dim", None) or self.config.hidden_size // heads
        return by_blocks(mask, self.device, heads * size)

    def _form(self, mask: Tensor) -> Tensor:
        """Scaled-dot-product attention takes the bool mask; eager attention adds one."""
        if self._causal.config._attn_implementation != "eager":
            return mask
        added = torch.zeros(mask.shape, dtype=self.compute, device=mask.device)
        return added.masked_fill(~mask, torch.finfo(self.compute).min)
