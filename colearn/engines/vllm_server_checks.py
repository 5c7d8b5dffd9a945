"""Checks of a running vLLM server: model, tokenizer and the options that a run needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec
from colearn.text.json_value import read_json

from .server_answers import (
    AdapterLimits,
    BadAnswer,
    ListedModels,
    Schema,
    ServerInfo,
    Tokenized,
    read_as,
)
from .server_link import ServerLink, ServerRefused
from .vllm_options import adapters_of, rank_limit, slots_of

if TYPE_CHECKING:
    from transformers import PretrainedConfig

URL = "run.generator.url"
GENERATE = "/inference/v1/generate"
TEXT = "\u00dcbung 1: def f(x): return x+1 \u4e2d\n\t end"
"""Text that the tokenizers of both the run and the server encode, so that the token ids can be
compared. The text contains letters, digits, signs, spaces and multi-byte characters."""


class Served(NamedTuple):
    """A server's model name and maximum length."""

    name: str
    """Name of the served base."""
    longest: int
    """Maximum length of a history in tokens."""


def check_server(link: ServerLink, base: Base, roles: Mapping[str, AgentSpec]) -> Served:
    """Check a running server. Errors: ConfigError for a server with another model or tokenizer, or
    without a needed option."""
    checks = _Checks(link, base, roles)
    name, longest = checks.model()
    checks.tokenizer(name)
    checks.options()
    return Served(name, longest)


class _Checks:
    def __init__(self, link: ServerLink, base: Base, roles: Mapping[str, AgentSpec]) -> None:
        self._link, self._base, self._roles = link, base, roles

    def model(self) -> tuple[str, int]:
        """The name under which the base is served, and its maximum history length in tokens."""
        try:
            answer = self._link.call("GET", "/v1/models", timeout=30)
        except ServerLost as error:
            reason = str(error).partition(self._link.url)[2].partition(";")[0].strip()
            raise ConfigError(
                f"{URL}: no vLLM server at {self._link.url} ({reason}); start it first, or leave "
                "url out to let the run start one"
            ) from None
        except ServerRefused as error:
            self._is_none(str(error))
        try:
            listed = read_as(ListedModels, answer).data
        except BadAnswer:
            listed = []
        for card in listed:
            if card.parent is None and card.max_model_len is not None:
                self._shapes(Path(card.root or "") / "config.json")
                return card.id, card.max_model_len
        self._is_none("/v1/models has no model with a max_model_len")

    def _shapes(self, config: Path) -> None:
        """Compare shapes. Errors: ConfigError if the served folder is readable and has other
        shapes."""
        try:
            text = config.read_text(errors="replace")
        except (OSError, ValueError):
            return  # on another machine, or no path at all
        try:
            served = read_json(text)
            if not isinstance(served, dict):
                raise ValueError("is no object")
        except ValueError as error:
            raise ConfigError(
                f"{URL}: the server at {self._link.url} serves a folder whose config.json {error}; "
                "serve the trained model's path"
            ) from None
        model_config, text_model = self._base.causal.config, self._base.config
        self._compare(served, model_config)
        for name, nested in served.items():  # the text model of a model that also reads images
            if isinstance(nested, dict) and getattr(model_config, name, None) is text_model:
                self._compare(nested, text_model)

    def _compare(self, served: Mapping[str, Any], trained: PretrainedConfig) -> None:
        for field in ("model_type", "vocab_size", "hidden_size", "num_hidden_layers"):
            value = getattr(trained, field, None)
            if field in served and served[field] != value:
                raise ConfigError(
                    f"{URL}: the server at {self._link.url} serves another model ({field} "
                    f"{served[field]}, the trained one has {value}); serve the trained one's path"
                )

    def tokenizer(self, name: str) -> None:
        body = {"model": name, "prompt": TEXT, "add_special_tokens": False}
        try:
            answer = self._link.call("POST", "/tokenize", body)
        except ServerRefused as error:
            self._is_none(f"/tokenize: {error}")
        served = self._read(Tokenized, answer, "/tokenize").tokens
        for agent, role in self._roles.items():
            if served != role.chat_format.tokenizer.encode(TEXT, add_special_tokens=False):
                raise ConfigError(
                    f"{URL}: the server at {self._link.url} has another tokenizer than agent "
                    f"'{agent}'; serve the trained model's folder, or set --tokenizer to it"
                )

    def options(self) -> None:
        """Check the server's options. Errors: ConfigError if an option that a role needs is off."""
        try:
            self._link.call("POST", GENERATE, {})
        except ServerRefused as error:
            if error.status in (403, 404):
                self._without("--enable-scale-out")
        try:
            answer = self._link.call("GET", "/server_info?config_format=json")
        except ServerRefused as error:
            if error.status in (403, 404):
                self._without("VLLM_SERVER_DEV_MODE=1 in its environment")
            raise ConfigError(
                f"{URL}: the server at {self._link.url} cannot list its settings (/server_info: "
                f"{error}); vLLM runs pip for that: install pip in the server's environment"
            ) from None
        config = self._read(ServerInfo, answer, "/server_info").vllm_config
        if config.of_model.logprobs_mode != "processed_logprobs":
            self._without("--logprobs-mode processed_logprobs")
        if adapters_of(self._roles):
            self._lora(config.lora_config)
        for agent, role in self._roles.items():
            for field in ("top_p", "top_k"):
                if getattr(role.sampling, field) not in (1.0, None):
                    self._score_before_cuts(f"agents.{agent}.sampling.{field}")

    def _lora(self, config: AdapterLimits | None) -> None:
        slots, rank = slots_of(self._roles), rank_limit(self._base, adapters_of(self._roles))
        if config is None:
            self._without(f"--enable-lora --max-loras {slots} --max-lora-rank {rank}")
        if config.max_loras < slots:
            self._without(f"--max-loras {slots} (it has {config.max_loras})")
        if config.max_lora_rank < rank:
            self._without(f"--max-lora-rank {rank} (it has {config.max_lora_rank})")
        try:
            self._link.call("POST", "/v1/load_lora_adapter", {})
        except ServerRefused as error:
            if error.status in (404, 405):
                self._without("VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment")

    def _score_before_cuts(self, field: str) -> None:
        try:
            self._link.call("POST", "/collective_rpc", {"method": "score_before_cuts"})
        except ServerRefused:
            self._without(
                "--worker-extension-cls colearn.engines.vllm_worker.WorkerExtension and "
                f"VLLM_USE_V2_MODEL_RUNNER=0, which {field} needs"
            )

    def _read(self, schema: type[Schema], answer: Any, path: str) -> Schema:
        try:
            return read_as(schema, answer)
        except BadAnswer as error:
            self._is_none(f"{path} {error}")

    def _is_none(self, reason: str) -> NoReturn:
        raise ConfigError(
            f"{URL}: {self._link.url} is no vLLM server ({reason}); give the URL of one"
        )

    def _without(self, option: str) -> NoReturn:
        raise ConfigError(
            f"{URL}: the server at {self._link.url} runs without {option}; restart it with "
            "that, or leave url out to let the run start one"
        )
