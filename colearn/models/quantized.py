"""4-bit storage of frozen base weights (QLoRA), by bitsandbytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from colearn.errors import required

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig

BLOCK = 64
"""Number of weights that share a scale."""
SCALES = 256
"""Number of scales that share a second-level scale; each scale is quantised to 8 bits."""
_REPACKS = "support_avx512bf16_for_cpu"
"""Name of the attribute that makes bitsandbytes' layers repack their weights."""


def nf4(compute: torch.dtype) -> BitsAndBytesConfig:
    """Return transformers' quantization settings. Linear layers use the 4-bit normal-float format
    with quantised scales; embeddings and the LM head keep their type. Matrix multiplications run in
    `compute`.

    Errors: MissingExtra.
    """
    required("bitsandbytes", "quantized")
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=compute,
        bnb_4bit_use_double_quant=True,
    )


def keep_layout(model: nn.Module) -> None:
    """Keep the loaded layout of the weights in every pass.

    On some CPUs bitsandbytes repacks a layer's weights at the first pass without gradient, for a
    kernel that autograd does not track. Adapters in earlier layers would then stop learning.
    """
    for layer in model.modules():
        if hasattr(layer, _REPACKS):
            setattr(layer, _REPACKS, False)


class DescribedLinear(nn.Linear):
    """A placeholder for bitsandbytes' 4-bit layer, with the same size but without values, for
    memory estimates."""

    def __init__(self, like: nn.Linear) -> None:
        super().__init__(like.in_features, like.out_features, bias=False, device="meta")
        number = like.weight.numel()
        scales = -(-number // BLOCK)
        self.weight = _bytes(-(-number // 2))
        self.scales = _bytes(scales + 4 * -(-scales // SCALES))
        self.bias = like.bias

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = _Product.apply(input, self.in_features, self.out_features)
        return result if self.bias is None else result + self.bias


class _Product(torch.autograd.Function):
    """Matrix multiplication that dequantises the weights in the forward pass, and again in the
    backward pass."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, inputs: int, outputs: int) -> torch.Tensor:
        ctx.sizes = inputs, outputs
        return nn.functional.linear(states, states.new_empty(outputs, inputs))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (gradient,), (inputs, outputs) = gradients, ctx.sizes
        return gradient @ gradient.new_empty(outputs, inputs), None, None


def describe(model: Any) -> None:
    """Replace a model's linear layers, except the LM head, with `DescribedLinear` layers."""
    head = model.get_output_embeddings()
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear) and layer is not head:
                setattr(module, name, DescribedLinear(layer))


def _bytes(number: int) -> nn.Parameter:
    stored = torch.empty(number, dtype=torch.uint8, device="meta")
    return nn.Parameter(stored, requires_grad=False)
