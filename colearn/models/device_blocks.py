"""Attention and gated MLPs for inference on accelerators: layers with one input are one matrix
multiplication."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from .lean_layers import norm_kind, same_code
from .tree_attention import NAME, tree_attention

Forward = Callable[..., Tensor]


def attention(layer: Any, product: Forward, cache: str) -> Callable[..., tuple[Tensor, None]]:
    """Attention of Llama, Qwen2, Qwen3 and architectures with the same code. Queries and keys are
    normalised and rotated together."""
    size, half = layer.head_dim, layer.head_dim // 2
    queries, keys = (one.out_features // size for one in (layer.q_proj, layer.k_proj))
    scale: Tensor | None = None

    def forward(
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Any = None,
        **given: Any,
    ) -> tuple[Tensor, None]:
        nonlocal scale
        heads = product(hidden_states).unflatten(-1, (-1, size))
        joint, value = heads[:, :, : queries + keys], heads[:, :, queries + keys :]
        if hasattr(layer, "q_norm"):
            if scale is None:
                weights = [layer.q_norm.weight] * queries + [layer.k_norm.weight] * keys
                scale = torch.cat(weights).view(-1, size)
            with torch.autocast(joint.device.type, enabled=False):
                eps = layer.q_norm.variance_epsilon
                joint = scale * nn.functional.rms_norm(joint, (size,), None, eps)
        cos, sin = (part.unsqueeze(2) for part in position_embeddings)
        turned = joint * cos
        turned[..., :half].addcmul_(joint[..., half:], sin[..., :half], value=-1)
        turned[..., half:].addcmul_(joint[..., :half], sin[..., half:])
        query, key = turned.transpose(1, 2).split((queries, keys), 1)
        value = value.transpose(1, 2)
        if given.get(cache) is not None:
            key, value = given[cache].update(key, value, layer.layer_idx)
        attended, _ = tree_attention(
            layer, query, key, value, attention_mask, scaling=layer.scaling
        )
        output: Tensor = layer.o_proj(attended.flatten(2))
        return output, None

    return forward


def gated(layer: Any, product: Forward) -> Forward:
    def forward(states: Tensor) -> Tensor:
        gate, up = product(states).chunk(2, -1)
        output: Tensor = layer.down_proj(layer.act_fn(gate) * up)
        return output

    return forward


def beside(layer: nn.Module) -> list[Any]:
    """The layers of an attention or of a gated MLP that read one input, if the code of its class is
    known; else none."""
    from transformers.models.llama import modeling_llama
    from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention
    from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

    names: tuple[str, ...] = ()
    known = (modeling_llama.LlamaAttention, Qwen2Attention, Qwen3Attention)
    if same_code(type(layer), modeling_llama.LlamaMLP):
        names = ("gate_proj", "up_proj")
    elif any(same_code(type(layer), kind) for kind in known):
        attention: Any = layer
        rotation = "apply_rotary_pos_emb", "rotate_half"
        usual = same_code(sys.modules[type(layer).__module__], modeling_llama, *rotation)
        norms = [getattr(layer, name) for name in ("q_norm", "k_norm") if hasattr(layer, name)]
        usual = usual and all(norm_kind(type(norm)) == "llama" for norm in norms)
        if usual and attention.config._attn_implementation == NAME:
            names = ("q_proj", "k_proj", "v_proj")
    found = [getattr(layer, name) for name in names]
    return found if all(map(is_linear, found)) else []


def is_linear(layer: nn.Module) -> bool:
    """Whether the layer is linear, with LoRA adapters or without."""
    from peft.tuners.lora import Linear

    if type(layer) is not Linear:
        return plain(layer)
    adapted: Any = layer
    return not adapted.lora_variant and not adapted.merged and plain(adapted.base_layer)


def plain(layer: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether the layer is an unmodified `nn.Linear`, so that a call only multiplies by the weights
    and adds the bias."""
    return type(layer) is nn.Linear and "forward" not in layer.__dict__
