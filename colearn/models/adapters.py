"""LoRA adapters that share one set of base weights in memory."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from colearn.contract.seeding import derive_seed
from colearn.errors import ConfigError, reason_of

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel

    from colearn.config import LoRASettings

NO_ADAPTER = "__base__"
"""peft's adapter name for rows of a mixed batch that use the base weights only."""


class Adapted(nn.Module):
    """A causal language model with injected adapters, selected by name."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model: Any = model
        self.adapters: list[str] = []
        self._causal = model
        self.selected: str | Sequence[str | None] | None = None
        """The argument of the innermost active `using`."""
        self._row_adapters: list[str] | None = None
        self.model.eval()

    @property
    def causal(self) -> PreTrainedModel:
        """The transformers model, with the injected adapters."""
        return self._causal

    def add_adapter(self, name: str, lora: LoRASettings) -> None:
        """Inject a new adapter in float32 with B = 0, so that outputs change only after training.

        Errors: ConfigError if the model has none of the target layers.
        """
        from peft import LoraConfig

        settings = LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            target_modules=lora.targets,
        )
        try:
            self._inject(name, settings)
        except (ValueError, re.error) as error:  # targets in one text are a pattern
            if "must target the same set of parameters" in str(error):
                raise ConfigError(
                    "lora.targets: adapters on one mixture of experts must have the same experts "
                    "and routers as targets; write equal targets, or name a copy of the folder"
                ) from None
            raise ConfigError(
                f"lora.targets: {reason_of(error)} ('all-linear' fits every model; any other text "
                "is a pattern that whole names match, a list holds names)"
            ) from None
        self._check_targets(name, lora.targets)
        self.adapters.append(name)
        self.model.eval()

    def add_seeded_adapter(self, name: str, lora: LoRASettings, seed: int) -> None:
        """Inject a new adapter as `add_adapter` does, with initial weights determined by `seed` and
        `name`. Errors: as `add_adapter`."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "adapter", name))
            self.add_adapter(name, lora)

    def check_headless(self, adapter: str, user: str) -> None:
        """Errors: ConfigError if an adapter is on the LM head, because the network `user` never
        runs the LM head."""
        head: Any = self._causal.get_output_embeddings()
        if self.head_adapted and adapter in head.scaling:
            raise ConfigError(
                f"lora.targets: {user} does not run the LM head's layer, so an adapter on it would "
                "never be trained; name other layers"
            )

    @property
    def head_adapted(self) -> bool:
        """Whether an adapter is on the LM head."""
        from peft.tuners.lora import LoraLayer

        return isinstance(self._causal.get_output_embeddings(), LoraLayer)

    @property
    def row_adapters(self) -> list[str] | None:
        """peft's adapter name for each row of a mixed batch; None if all rows share one adapter or
        no row has an adapter."""
        return self._row_adapters

    def _check_targets(self, adapter: str, targets: str | Sequence[str]) -> None:
        """Errors: ConfigError for a listed target name that matches no layer; peft ignores such
        names."""
        layers = [f".{name}" for name in self.targeted(adapter)]
        left = self.model.peft_config[adapter].target_modules  # without the names of experts
        for target in [] if isinstance(targets, str) else targets:
            if target in left and not any(layer.endswith(f".{target}") for layer in layers):
                known = dict.fromkeys(layer.rpartition(".")[2] for layer in layers)
                raise ConfigError(
                    f"lora.targets: the model has no layer '{target}' ({', '.join(known)} are "
                    "found); correct the name or leave it out"
                )

    def targeted(self, adapter: str) -> list[str]:
        """Names of the layers that an adapter modifies."""
        from peft.tuners.lora import LoraLayer

        return [
            name
            for name, layer in self._causal.named_modules()
            if isinstance(layer, LoraLayer) and adapter in layer.scaling
        ]

    def _inject(self, name: str, settings: LoraConfig) -> None:
        from peft import get_peft_model
        from peft.tuners.lora.layer import Linear, LoraLayer, ParamWrapper

        before = {layer for layer in self.model.modules() if isinstance(layer, LoraLayer)}
        with warnings.catch_warnings():
            # peft reads a property that transformers has deprecated
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is", FutureWarning)
            # `merged` unties them
            warnings.filterwarnings("ignore", "Model (with|has) `tie_word_embeddings=True`")
            if not self.adapters:
                self.model = get_peft_model(self._causal, settings, adapter_name=name)
            else:
                self.model.add_adapter(name, settings)
        for layer in self.model.modules():
            if isinstance(layer, LoraLayer) and layer not in before:
                if isinstance(layer, ParamWrapper):
                    layer.forward = partial(self._by_adapter, layer, layer.forward)
                else:
                    layer.register_forward_pre_hook(self._route, with_kwargs=True)
                if type(layer) is Linear:
                    layer._mixed_batch_forward = partial(_mixed, layer, layer._mixed_batch_forward)

    def _route(self, _: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        if self._row_adapters is not None:
            kwargs["adapter_names"] = self._row_adapters
        return args, kwargs

    def _by_adapter(
        self, layer: Any, forward: Callable[..., Any], states: torch.Tensor, *args: Any
    ) -> Any:
        """Run a layer whose weights are one parameter, for example a router or all experts. peft
        runs it with one adapter only, so a mixed batch is run once for each adapter, on the tokens
        of its rows."""
        names = self._row_adapters
        if names is None:
            return forward(states, *args)
        active, disabled = layer._active_adapter, layer._disable_adapters
        try:
            with self.of_rows(None, one=True):
                return _joined(layer, forward, names, states, *args)
        finally:
            _set(layer, active, disabled)

    @contextmanager
    def of_rows(
        self, rows: Sequence[int] | None, *, one: bool = False
    ) -> Iterator[list[str] | None]:
        """Context in which the model computes only these rows of the batch. Used inside `using`
        with one adapter per row. `one`: the rows share the adapter that the layers have. Yields
        `row_adapters`."""
        row_adapters = self._row_adapters
        if one:
            self._row_adapters = None
        elif row_adapters is not None and rows is not None:
            self._row_adapters = [row_adapters[row] for row in rows]
        try:
            yield self._row_adapters
        finally:
            self._row_adapters = row_adapters

    @contextmanager
    def using(self, adapters: str | Sequence[str | None] | None) -> Iterator[None]:
        """Select one adapter, no adapter, or one adapter for each row of the batch. In training,
        the rows of an adapter are adjacent."""
        if not self.adapters:
            yield
            return
        before, self.selected = self.selected, adapters
        try:
            with self._selecting(adapters):
                yield
        finally:
            self.selected = before

    @contextmanager
    def _selecting(self, adapters: str | Sequence[str | None] | None) -> Iterator[None]:
        if not isinstance(adapters, str) and adapters is not None:
            if len(set(adapters)) > 1:
                self._row_adapters = [adapter or NO_ADAPTER for adapter in adapters]
                if torch.is_grad_enabled():
                    self._require_gradients(adapters)
                try:
                    yield
                finally:
                    self._row_adapters = None
                return
            adapters = adapters[0]
        if adapters is None:
            with self.model.disable_adapter():
                yield
            return
        if self.model.active_adapter != adapters:
            self.model.set_adapter(adapters)
        yield

    def _require_gradients(self, adapters: Sequence[str | None]) -> None:
        """peft lets only the weights of its one active adapter have gradients."""
        for adapter in filter(None, set(adapters)):
            for parameter in self.adapter_parameters(adapter).values():
                parameter.requires_grad_()

    def adapter_parameters(self, name: str) -> dict[str, nn.Parameter]:
        """The trained tensors of one adapter, keyed by peft's parameter name."""
        return {
            key: parameter
            for key, parameter in self.model.named_parameters()
            if name in key.split(".")  # an embedding's key ends in the name
        }


def _mixed(
    layer: Any,
    gathering: Callable[..., torch.Tensor],
    states: torch.Tensor,
    *args: Any,
    adapter_names: Sequence[str],
    **named: Any,
) -> torch.Tensor:
    """Run a linear layer with one adapter per row. In training, an adapter reads a slice of the
    batch. peft's `gathering` copies the rows of each adapter, in any order, for every layer."""
    if layer.lora_variant or not torch.is_grad_enabled():
        return gathering(states, *args, adapter_names=adapter_names, **named)
    result: torch.Tensor = layer.base_layer(states)
    cast = torch.is_autocast_enabled(states.device.type)  # to the compute type, by the layers
    runs = [(name, len(list(rows))) for name, rows in groupby(adapter_names)]
    changes: list[torch.Tensor] = []
    for (name, _), part in zip(runs, states.split([size for _, size in runs]), strict=True):
        if name in layer.lora_A:
            down, up = layer.lora_A[name], layer.lora_B[name]
            given = part if cast else part.to(down.weight.dtype)
            changes.append(up(down(given) * layer.scaling[name]))
        else:
            changes.append(result.new_zeros(*part.shape[:-1], result.shape[-1]))
    return result + torch.cat([change.to(result.dtype) for change in changes])


def _joined(
    layer: Any, forward: Callable[..., Any], names: Sequence[str], states: torch.Tensor, *args: Any
) -> Any:
    """Return the outputs of one pass for each adapter in the order of the batch."""
    outputs: list[torch.Tensor] = []
    for name in dict.fromkeys(names):
        rows = torch.tensor([row for row, other in enumerate(names) if other == name])
        places = partial(_places, rows.to(states.device))
        tokens = places(len(states) // len(names))  # rows may be flattened into tokens
        _set(layer, [name], name == NO_ADAPTER)
        part = forward(states[tokens], *(one[tokens] for one in args))
        parts = part if isinstance(part, tuple) else (part,)
        each = [len(one) // len(rows) for one in parts]  # a router flattens the rows itself
        outputs = outputs or [
            one.new_zeros(len(names) * size, *one.shape[1:])
            for one, size in zip(parts, each, strict=True)
        ]
        for output, one, size in zip(outputs, parts, each, strict=True):
            output[places(size)] = one
    return tuple(outputs) if isinstance(part, tuple) else outputs[0]


def _places(rows: torch.Tensor, each: int) -> torch.Tensor:
    """Return the positions of rows in a tensor with `each` positions for every row."""
    return (rows[:, None] * each + torch.arange(each, device=rows.device)).flatten()


def _set(layer: Any, active: Any, disabled: bool) -> None:
    """Select the adapter of one layer, in the wrappers of all its adapted parameters."""
    from peft.tuners.lora.layer import ParamWrapper

    while isinstance(layer, ParamWrapper):
        layer._active_adapter, layer._disable_adapters = active, disabled
        layer = layer.base_layer
