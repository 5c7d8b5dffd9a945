"""A set of base weights, with separate forward passes for the backbone and the LM head."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from colearn.contract.rotary import by_length, steady_positions
from colearn.contract.rows import Visibility
from colearn.errors import ConfigError

from .adapters import Adapted
from .device_layers import DeviceLayers, RowMasks
from .flex import FlexMask, too_large
from .lean_layers import LARGE, Lean, OfRead, kept_inputs, lean_layers, of_read_positions
from .logits import logits_at_once, scaled_logits
from .packed_products import PackedProducts, worthwhile
from .recomputation import recomputing
from .tree_attention import NAME, by_blocks
from .tree_mask import TreeMask

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Base(Adapted):
    """A causal language model split into backbone, LM head and selectable adapters.

    A critic never runs the head; an actor runs the head only at action tokens. `compute` is the
    autocast type; trained weights stay float32.
    """

    def __init__(self, model: PreTrainedModel, compute: torch.dtype = torch.float32) -> None:
        super().__init__(model)
        self.compute = compute
        if model.config._attn_implementation == "sdpa":
            model.set_attn_implementation(NAME)
        self.revision = 0
        """Number of times that a learner has written the weights or an adapter. This counter is
        needed because fused optimisers do not increment torch's version counter."""
        self.in_use = threading.RLock()
        """Lock held while a generator runs: only one thread at a time may select an adapter."""
        self._packed: PackedProducts | None = None
        self._device_layers: DeviceLayers | None = None
        self._lean: Lean = lean_layers(model)
        self.config: Any = model.config.get_text_config()
        """Config of the text model. A model that also reads images nests it in its own config,
        which then has no `vocab_size`."""
        self.cache_argument = cache_argument(model.get_decoder())
        """Name of the decoder's argument for a key/value cache."""

    @property
    def positions(self) -> int | None:
        """Maximum number of positions; None if the model's config sets no maximum. If the rotary
        frequencies depend on the longest row of a batch, the number of positions up to which these
        frequencies are constant.
        """
        return steady_positions(self.config)

    @property
    def compute_name(self) -> str:
        """Name of the compute type, as `models.NAME.dtype` has it."""
        return str(self.compute).removeprefix("torch.")

    @property
    def recordable(self) -> bool:
        """Whether a CUDA graph can replay a forward pass, because the pass only launches
        kernels."""
        return not by_length(self.config)

    @property
    def device(self) -> torch.device:
        return self._embeddings.weight.device  # transformers looks for it among all parameters

    @cached_property
    def _embeddings(self) -> torch.nn.Embedding:
        embeddings: torch.nn.Embedding = self._causal.get_input_embeddings()
        return embeddings

    @property
    def logits_at_once(self) -> int:
        """Maximum number of elements in one block of logits."""
        return logits_at_once(self.device)

    def hidden(
        self,
        input_ids: Tensor,
        *,
        position_ids: Tensor | None = None,
        mask: Tensor | Visibility | None = None,
        cache: Any = None,
        checkpointing: bool = False,
        read: Tensor | None = None,
        read_rows: Sequence[int] | None = None,
    ) -> Tensor:
        """Compute the last hidden states [B, T, D]. `mask` is bool [B, 1, T, keys] over the cache's
        keys, or the attention pattern of packed trees. `checkpointing` recomputes activations in
        backward. `read`: unique indices into the flattened [B, T]; the hidden states at all other
        positions may be undefined. `read_rows`: a row with the adapter of each position in `read`,
        if rows have different adapters.
        """
        of_read = partial(self.of_rows, read_rows)
        lean = self._keeping_inputs(input_ids.numel(), checkpointing, read, of_read)
        with self.autocast(), lean, self._recomputing(checkpointing):
            states: Tensor = self._causal.get_decoder()(
                input_ids=input_ids,
                attention_mask=None if mask is None else self._masks(mask, position_ids, cache),
                position_ids=position_ids,
                use_cache=cache is not None,
                **{self.cache_argument: cache},
            ).last_hidden_state
        return states

    def logits(self, hidden: Tensor, rows: Sequence[int] | None = None) -> Tensor:
        """Compute float32 logits [..., V] of hidden states, with the model's scaling. `rows`: the
        batch rows of the states, if these are not all rows."""
        with self.autocast(), self.of_rows(rows):
            logits: Tensor = self._causal.get_output_embeddings()(hidden)
        return scaled_logits(self.config, logits.float())

    @property
    def _by_blocks(self) -> bool:
        return bool(self._causal.config._attn_implementation == NAME)

    def packed(self) -> AbstractContextManager[None]:
        """Context in which layers run on copies of the weights, in the layout that is fastest on
        this device. Use this context only for inference, inside `using`. The copies are kept until
        `unpack`, which must be called before the weights change."""
        if self.device.type != "cpu":
            if self._device_layers is None:
                self._device_layers = DeviceLayers(self, self.compute, self.cache_argument)
            return self._device_layers.used()
        if not worthwhile(self.device, self.compute):
            return nullcontext()
        if self._packed is None:
            self._packed = PackedProducts(self._causal)
        return self._packed.used()

    @property
    def device_layers(self) -> DeviceLayers | None:
        """The copies that `packed` made on an accelerator."""
        return self._device_layers

    @property
    def row_masks(self) -> RowMasks | None:
        """The adapter masks that the layers read inside `packed` and inside `using` with one
        adapter per row."""
        return None if self._device_layers is None else self._device_layers.masks

    def unpack(self) -> None:
        """Free the copies made by `packed`."""
        self._packed = self._device_layers = None

    @property
    def _last(self) -> Sequence[torch.nn.Module]:
        """Modules of the last layer that are computed only at the positions that are read."""
        layers = getattr(self._causal.get_decoder(), "layers", ())
        last = layers[self.config.num_hidden_layers - 1] if layers else None
        return of_read_positions(last, self._lean)

    def _keeping_inputs(
        self, positions: int, checkpointing: bool, read: Tensor | None, of_read: OfRead
    ) -> AbstractContextManager[None]:
        """Context in which norms and MLPs save only their inputs for the backward pass, and parts
        of the last layer are computed only at the positions `read`; the latter also without a
        gradient, so that old log-probabilities are those of the training pass. This context has no
        effect with activation checkpointing, because whole layers then save only their inputs."""
        small = positions * self.config.hidden_size < LARGE
        if small or checkpointing:
            return nullcontext()
        return kept_inputs(self._lean if torch.is_grad_enabled() else (), self._last, read, of_read)

    def _recomputing(self, checkpointing: bool) -> AbstractContextManager[None]:
        if not (checkpointing and torch.is_grad_enabled()):
            return nullcontext()
        return recomputing(self._causal, partial(self.using, self.selected))

    def autocast(self) -> Any:
        """Autocast with its weight cache disabled. The weight cache would hold a copy of all
        weights during a pass, although the pass uses each weight only once."""
        return torch.autocast(
            self.device.type,
            dtype=self.compute,
            enabled=self.compute != torch.float32,
            cache_enabled=False,
        )

    def _masks(self, mask: Tensor | Visibility, position_ids: Tensor | None, cache: Any) -> Any:
        """Convert the mask to the architecture's form: a single mask, or one mask for each kind of
        layer."""
        kinds = set(getattr(self.config, "layer_types", None) or ())
        # GPT-Neo's name; its layers apply their window to a key's place in the row
        kinds |= {"local"} & set(getattr(self.config, "attention_layers", None) or ())
        unknown = kinds - {"full_attention", "sliding_attention"}
        if unknown:
            raise ConfigError(
                f"models.path: layers of kind {', '.join(sorted(unknown))} have no key/value "
                "cache that can be forked; use a model with full or sliding attention"
            )
        # a field that its class does not declare is another architecture's, and has no effect
        declared = hasattr(type(self.config), "sliding_window")
        window = self.config.sliding_window if declared else None
        if not isinstance(mask, Tensor):
            blocks = self._blocks(mask, window)
            if blocks is not None:
                return dict.fromkeys(kinds, blocks) if len(kinds) > 1 else blocks
            if self._by_segments(mask):
                assert isinstance(mask, TreeMask)
                flex_mask = partial(FlexMask.of, mask, self.device)
                if kinds <= {"full_attention"} and (kinds or window is None):
                    return flex_mask()
                if not kinds:
                    return flex_mask(window)
                return {"full_attention": flex_mask(), "sliding_attention": flex_mask(window)}
            mask = mask.dense(self.device)
        cached = cache is not None
        if kinds <= {"full_attention"} and (kinds or window is None):
            return self._form(mask, cached)
        assert position_ids is not None and window is not None
        keys = position_ids if cache is None else cache.key_positions()
        near = mask & (position_ids[:, None, :, None] - keys[:, None, None, :] < window)
        if not kinds:  # Mistral, Phi 3, ...: a window on every layer
            return self._form(near, cached)
        forms = {"full_attention": mask, "sliding_attention": near}
        return {kind: self._form(one, cached) for kind, one in forms.items()}

    def _blocks(self, mask: Visibility, window: int | None) -> Tensor | None:
        """Return the blocks of a packed tree's mask; None if the model or device does not support
        block attention."""
        if not isinstance(mask, TreeMask) or not self._by_blocks:
            return None
        if window is not None and mask.longest > window:
            return None
        heads = self.config.num_attention_heads
        size = getattr(self.config, "head_dim", None) or self.config.hidden_size // heads
        return by_blocks(mask, self.device, heads * size)

    def _by_segments(self, mask: Visibility) -> bool:
        """Whether to use FlexAttention for the pattern. True on an accelerator, unless the pattern
        is small."""
        if not isinstance(mask, TreeMask) or not self._by_blocks:
            return False
        return self.device.type == "cuda" and too_large(mask)

    def _form(self, mask: Tensor, cached: bool) -> Tensor:
        """Return the mask as bool for scaled-dot-product attention, or as an additive mask for
        eager attention and for decoding on an accelerator."""
        if self._causal.config._attn_implementation != "eager":
            # on an accelerator, torch would convert the mask in every layer
            return self._added(mask, float("-inf")) if cached and mask.is_cuda else mask
        return self._added(mask, torch.finfo(self.compute).min)

    def _added(self, mask: Tensor, hidden: float) -> Tensor:
        added = torch.full(mask.shape, hidden, dtype=self.compute, device=mask.device)
        return added.masked_fill_(mask, 0.0)


def cache_argument(decoder: torch.nn.Module) -> str:
    """Name of the decoder's argument for a key/value cache: `cache` since transformers 5.24,
    `past_key_values` in earlier versions and in models from other packages."""
    name = "cache"
    return name if name in inspect.signature(decoder.forward).parameters else "past_key_values"
