"""RMSNorm and gated MLP with low memory use: only the inputs are saved for the backward pass, and
everything else is recomputed.

Autograd saves each operator's operands: five tensors for a norm, and four tensors of the inner
width for an MLP. The functions in this module save one tensor for a norm and two tensors for an
MLP. Outputs equal the outputs of transformers' modules bit for bit, but gradients differ in the
last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Activation = Callable[[Tensor], Tensor]
Forward = Callable[[Tensor], Tensor]
OfRead = Callable[[], AbstractContextManager[Any]]
"""Context of a pass over the positions that are read. Yields the positions' adapters, which a layer
receives instead of the rows' adapters."""
Lean = Sequence[tuple[nn.Module, Forward]]
"""Modules of a model, each with a forward function that saves fewer tensors."""

LARGE = 2**19
"""Minimum number of elements in a pass's hidden states. In smaller passes the saved memory does not
matter, and the overhead of a Python function costs time."""


def lean_layers(model: nn.Module) -> Lean:
    """Find the norms and MLPs that these functions can replace. The bytecode of a norm's or MLP's
    class must match the bytecode of a known class."""
    replacements: list[tuple[nn.Module, Forward]] = []
    for module in model.modules():
        kind = _kind(type(module))
        if kind is not None:
            replacements.append((module, partial(kind, module)))
    return replacements


@contextmanager
def kept_inputs(
    layers: Lean,
    last: Sequence[nn.Module] = (),
    read: Tensor | None = None,
    of_read: OfRead = nullcontext,
) -> Iterator[None]:
    """Context in which forward passes store fewer activations. `read` are the positions whose final
    hidden states are needed, as unique indices into the flattened [B, T] (None: all positions). The
    modules in `last`, which belong to the last layer, are then computed only at these positions;
    their output is 0 elsewhere. `of_read` is the context in which they run."""
    forwards = dict(layers)
    if read is not None:
        forwards |= {
            layer: partial(_at, read, of_read, forwards.get(layer, layer.forward)) for layer in last
        }
    for module, forward in forwards.items():
        module.__dict__["forward"] = forward
    try:
        yield
    finally:
        for module in forwards:
            del module.__dict__["forward"]


def of_read_positions(layer: nn.Module | None, layers: Lean) -> list[nn.Module]:
    """The modules of a last layer whose output is needed only at the positions that are read: the
    MLP, the queries and the output of the attention, but not its keys and values. The list is empty
    unless `layers` contains the MLP."""
    mlp, attention = (getattr(layer, name, None) for name in ("mlp", "self_attn"))
    if mlp not in dict(layers):
        return []
    modules = (mlp, *(getattr(attention, name, None) for name in ("q_proj", "o_proj")))
    return [module for module in modules if isinstance(module, nn.Module)]


def _at(
    read: Tensor, of_read: OfRead, forward: Callable[..., Tensor], states: Tensor, **named: Any
) -> Tensor:
    """Apply `forward` at the positions `read` of states [B, T, D]; 0 at all other positions. The
    width and the dtype are those of the output: attention may be wider than the model."""
    flat = states.flatten(0, 1)
    with of_read() as adapters:
        output = forward(flat[read], **dict.fromkeys(named, adapters))
    result = output.new_zeros(len(flat), output.shape[-1]).index_copy(0, read, output)
    return result.view(*states.shape[:-1], -1)


def _kind(module: type[nn.Module]) -> Callable[[Any, Tensor], Tensor] | None:
    from transformers.models.llama.modeling_llama import LlamaMLP

    if same_code(module, LlamaMLP):
        return _mlp
    norm = norm_kind(module)
    return None if norm is None else _llama_norm if norm == "llama" else _gemma_norm


def norm_kind(module: type[nn.Module]) -> Literal["llama", "gemma"] | None:
    """The kind of a class that is an RMSNorm: Llama's, or Gemma's, which multiplies by 1 + weight.
    None for any other class."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    if same_code(module, LlamaRMSNorm):
        return "llama"
    if module.__name__.startswith("Gemma"):
        from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm

        if same_code(module, Gemma3RMSNorm, "forward", "_norm"):
            return "gemma"
    return None


def same_code(first: Any, second: Any, *names: str) -> bool:
    """Whether the named methods of two classes, or functions of two modules, have equal bytecode.
    transformers repeats a layer's code for each architecture."""
    codes = []
    for kind in (first, second):
        methods = [getattr(kind, name, None) for name in names or ("forward",)]
        codes.append([getattr(method, "__code__", None) for method in methods])
    return all(
        a is not None
        and b is not None
        and (a.co_code, a.co_names, a.co_consts) == (b.co_code, b.co_names, b.co_consts)
        for a, b in zip(*codes, strict=True)
    )


def _llama_norm(norm: Any, states: Tensor) -> Tensor:
    result: Tensor = _RMSNorm.apply(states, norm.weight, norm.variance_epsilon, False)
    return result


def _gemma_norm(norm: Any, states: Tensor) -> Tensor:
    result: Tensor = _RMSNorm.apply(states, norm.weight, norm.eps, True)
    return result


def _mlp(mlp: Any, states: Tensor) -> Tensor:
    gate, up, down = mlp.gate_proj(states), mlp.up_proj(states), mlp.down_proj
    result: Tensor
    if _plain(down):
        result = _GatedProduct.apply(gate, up, down.weight, mlp.act_fn)
    else:
        result = down(_Gated.apply(gate, up, mlp.act_fn))
    return result


def _plain(layer: nn.Module) -> bool:
    """Whether the layer is an unmodified `nn.Linear`, so that a call only multiplies by the weights
    and adds the bias."""
    return (
        type(layer) is nn.Linear
        and layer.bias is None
        and "forward" not in layer.__dict__
        and not (layer._forward_hooks or layer._forward_pre_hooks)
        and not (layer._backward_hooks or layer._backward_pre_hooks)
    )


class _RMSNorm(torch.autograd.Function):
    """RMSNorm. With `shifted`, Gemma's norm, which multiplies by 1 + weight in float32 and casts
    afterwards."""

    @staticmethod
    def forward(context: Any, states: Tensor, weight: Tensor, eps: float, shifted: bool) -> Tensor:
        exact = states.float()
        scale = exact.pow(2).mean(-1, keepdim=True).add_(eps).rsqrt_()
        context.save_for_backward(states, weight, scale)
        context.shifted = shifted
        normed = exact * scale
        if shifted:
            return normed.mul_(1.0 + weight.float()).type_as(states)
        return weight * normed.to(states.dtype)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, scale = context.saved_tensors
        normed = states.float() * scale
        if context.shifted:
            gradient, factor, rounded = gradient.float(), 1.0 + weight.float(), normed
        else:
            factor, rounded = weight, normed.to(states.dtype)
        to_weight = None
        if context.needs_input_grad[1]:
            to_weight = (gradient * rounded).flatten(0, -2).sum(0).to(weight.dtype)
        to_normed = (gradient * factor).to(rounded.dtype).float()
        mean = (to_normed * normed).mean(-1, keepdim=True)
        to_states = to_normed.sub_(normed.mul_(mean)).mul_(scale)
        return to_states.to(states.dtype), to_weight, None, None


class _Gated(torch.autograd.Function):
    """act(gate) * up"""

    @staticmethod
    def forward(context: Any, gate: Tensor, up: Tensor, act: Activation) -> Tensor:
        context.save_for_backward(gate, up)
        context.act = act
        return act(gate) * up

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gate, up = context.saved_tensors
        leaf, activated = _activated(gate, context.act)
        return *_to_factors(leaf, activated, up, gradient), None


class _GatedProduct(torch.autograd.Function):
    """(act(gate) * up) @ weight.T, with autocast's casts"""

    @staticmethod
    def forward(context: Any, gate: Tensor, up: Tensor, weight: Tensor, act: Activation) -> Tensor:
        context.save_for_backward(gate, up, weight)
        context.act = act
        return nn.functional.linear(act(gate) * up, weight)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gate, up, weight = context.saved_tensors
        leaf, activated = _activated(gate, context.act)
        to_weight = None
        if context.needs_input_grad[2]:
            product = (activated.detach() * up).to(gradient.dtype)
            to_weight = gradient.flatten(0, -2).T @ product.flatten(0, -2)
            to_weight = to_weight.to(weight.dtype)
            del product
        to_product = (gradient @ weight.to(gradient.dtype)).to(gate.dtype)
        return *_to_factors(leaf, activated, up, to_product), to_weight, None


def _activated(gate: Tensor, act: Activation) -> tuple[Tensor, Tensor]:
    leaf = gate.detach().requires_grad_()
    with torch.enable_grad():
        return leaf, act(leaf)


def _to_factors(
    leaf: Tensor, activated: Tensor, up: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of gate and up."""
    to_up = gradient * activated.detach()
    (to_gate,) = torch.autograd.grad(activated, leaf, gradient * up)
    return to_gate, to_up
