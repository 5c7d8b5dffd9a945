"""LoRA adapters that share one set of base weights in memory."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import nn

from colearn.errors import ConfigError, reason_of

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel

    from colearn.config import LoRASettings

NO_ADAPTER = "__base__"
"""peft's adapter name for rows of a mixed batch that use the base weights only."""


class Adapted(nn.Module):
    """A causal language model with adapters that are injected and selected by name."""

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
        """Inject a new adapter: float32, B = 0, so outputs change only after training.

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
            raise ConfigError(
                f"lora.targets: {reason_of(error)} ('all-linear' fits every model)"
            ) from None
        self.adapters.append(name)
        self.model.eval()

    def _inject(self, name: str, settings: LoraConfig) -> None:
        from peft import get_peft_model
        from peft.tuners.lora import LoraLayer

        if not self.adapters:
            with warnings.catch_warnings():
                # peft reads a property that transformers has deprecated
                warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is", FutureWarning)
                self.model = get_peft_model(self._causal, settings, adapter_name=name)
            for layer in self.model.modules():
                if isinstance(layer, LoraLayer):
                    layer.register_forward_pre_hook(self._route, with_kwargs=True)
        else:
            self.model.add_adapter(name, settings)

    def _route(self, _: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        if self._row_adapters is not None:
            kwargs["adapter_names"] = self._row_adapters
        return args, kwargs

    @contextmanager
    def using(self, adapters: str | Sequence[str | None] | None) -> Iterator[None]:
        """Select one adapter, none, or (inference only) one for each row of the batch."""
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

    def adapter_parameters(self, name: str) -> dict[str, nn.Parameter]:
        """The trained tensors of one adapter, keyed by peft's parameter name."""
        return {
            key: parameter for key, parameter in self.model.named_parameters() if f".{name}." in key
        }
