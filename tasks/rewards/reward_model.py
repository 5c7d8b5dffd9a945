"""A reward function that uses a sequence-classification model."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from colearn.contract.bounds import Count, check_bounds
from colearn.contract.reward import PromptOrText, RewardFunction
from colearn.contract.rotary import steady_positions
from colearn.errors import ConfigError, reason_of
from colearn.programs.files.first_opening import check_template

from .spent import Spent

_KEPT = 4096
"""Maximum number of rewards cached in memory."""


@dataclass(frozen=True, kw_only=True)
class RewardModel(RewardFunction):
    """A sequence classifier of `transformers` reads the prompt and the completion.

    With one output the reward is that logit, as in TRL. With several outputs, the reward is the
    probability of the class `output`. Messages are formatted with the classifier's chat template.
    Weights are read only from safetensors, and no code from a model repository is run.

    Wrong when the classifier was trained on text that differs from the policy's text.

    Errors: ConfigError at the first reward, for a model that cannot be used or a text that is too
    long.
    """

    path: str
    """A folder or a hub name."""
    output: int | None = None
    """Index of the class, from 0; None selects the only output."""
    max_length: Count = 4096
    """Maximum length of a text in tokens; a longer text, or one that is longer than the classifier
    reads, is an error."""
    device: str = "auto"
    """Device of the model."""
    spent: Spent = field(default_factory=Spent, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def label(self) -> str:
        return "reward_model"

    def costs(self) -> Mapping[str, float]:
        """The number of texts read, and the number of their tokens."""
        totals = self.spent.totals()
        return {f"reward model {name}": total for name, total in totals.items()}

    def __call__(
        self,
        prompts: Sequence[PromptOrText],
        completions: Sequence[PromptOrText],
        **columns: Any,
    ) -> list[float | None]:
        """The logit, or the probability of `output`, of each completion."""
        classifier = _classifier(self.path, self.output, self.device)
        rewards: list[float | None] = []
        for prompt, completion in zip(prompts, completions, strict=True):
            reward, tokens = classifier.read(prompt, completion, self.max_length)
            self.spent.add(**({"texts": 1, "tokens": tokens} if tokens else {"cached": 1}))
            rewards.append(reward)
        return rewards


class _Classifier:
    """A loaded model with the rewards of recent texts."""

    def __init__(self, path: str, output: int | None, device: str) -> None:
        from transformers import AutoModelForSequenceClassification

        from colearn.models.adapter_folder import loaded_revision
        from colearn.models.load import load_tokenizer, resolve_device

        field = "task.reward.path"
        self.tokenizer: Any = load_tokenizer(path, field=field)
        revision = loaded_revision(path, field)
        try:
            model, loaded = AutoModelForSequenceClassification.from_pretrained(
                path,
                revision=revision,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{field}: cannot load '{path}' ({reason_of(error)}); give the folder or "
                "hub name of a classifier with safetensors"
            ) from None
        if loaded["missing_keys"]:
            raise ConfigError(
                f"{field}: '{path}' lacks {min(loaded['missing_keys'])}; give a model that was "
                "trained as a classifier"
            )
        count = int(model.config.num_labels)
        if output is None and count != 1:
            raise ConfigError(
                f"task.reward.output: '{path}' has {count} outputs; pick one from 0 to {count - 1}"
            )
        if output is not None and not 0 <= output < max(count, 2):
            raise ConfigError(f"task.reward.output: '{path}' has {count} outputs, not {output + 1}")
        if output is not None and count == 1:
            raise ConfigError(f"task.reward.output: '{path}' has one output; leave it out")
        self.positions = steady_positions(model.config.get_text_config())
        self.model = model.to(resolve_device(device, "task.reward.device")).eval()
        self.path, self.output = path, output
        self._kept: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self, prompt: PromptOrText, completion: PromptOrText, longest: int
    ) -> tuple[float, int]:
        """Returns the reward and the number of tokens read, which is 0 if the text was read
        before."""
        import torch

        text = self._text(prompt, completion)
        with self._lock:
            if text in self._kept:
                return self._kept[text], 0
            inputs = self.tokenizer(text, return_tensors="pt", add_special_tokens=False)
            tokens = int(inputs["input_ids"].shape[1])
            if tokens > longest:
                raise ConfigError(
                    f"task.reward.max_length: a text has {tokens} tokens, more than {longest}; "
                    "raise it or shorten the answers"
                )
            if self.positions is not None and tokens > self.positions:
                raise ConfigError(
                    f"task.reward.path: a text has {tokens} tokens, and '{self.path}' reads "
                    f"{self.positions}; shorten the prompts or answers, or name a classifier that "
                    "reads more"
                )
            with torch.inference_mode():
                ids = inputs["input_ids"].to(self.model.device)
                mask = inputs["attention_mask"].to(self.model.device)
                logits = self.model(input_ids=ids, attention_mask=mask).logits[0].float()
            chosen = logits[0] if self.output is None else logits.softmax(-1)[self.output]
            self._kept[text] = float(chosen)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return self._kept[text], tokens

    def _text(self, prompt: PromptOrText, completion: PromptOrText) -> str:
        if isinstance(prompt, str):
            assert isinstance(completion, str), "a plain prompt has a plain completion"
            return prompt + completion
        if not isinstance(self.tokenizer.chat_template, str):
            raise ConfigError(
                f"task.reward.path: '{self.path}' has no chat template for messages; give prompts "
                "as plain text"
            )
        check_template(self.tokenizer.chat_template, {})
        messages = [*prompt, *completion]
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False))


@lru_cache(maxsize=4)
def _classifier(path: str, output: int | None, device: str) -> _Classifier:
    return _Classifier(path, output, device)
