"""A teacher behind a vLLM server: it scores the agents' tokens, and its weights are not here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from colearn.contract.rows import Outputs, Row
from colearn.errors import ConfigError, ServerLost

from .server_answers import (
    IMPOSSIBLE,
    BadAnswer,
    ListedModels,
    LogProb,
    ServerAnswer,
    Tokenized,
    read_as,
)
from .server_link import ServerLink, ServerRefused
from .vllm_server_checks import TEXT

_COMPLETE = "/v1/completions"


class _Scored(ServerAnswer):
    logprob: LogProb


class _Choice(ServerAnswer):
    prompt_logprobs: list[dict[str, _Scored] | None]


class _Completed(ServerAnswer):
    """Answer of `/v1/completions` to a request with `prompt_logprobs`."""

    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]


class Branch(NamedTuple):
    """One history of a row, from its root to an action that no later action continues."""

    tokens: tuple[int, ...]
    places: dict[int, int]
    """Position in `tokens` of each action token, by its index in the row."""


def branches(row: Row) -> Iterator[Branch]:
    """The branches that together contain every action token of a row."""
    pieces = row.pieces
    number_at = {
        piece.start: number for number, piece in enumerate(pieces) if piece.start < piece.end
    }
    spans = {number_at[span.start] for span in row.spans}
    covered: set[int] = set()
    for last in sorted(spans, reverse=True):  # a piece has a higher number than its parent
        if last in covered:
            continue
        chain = [last]
        while (parent := pieces[chain[-1]].parent) >= 0:
            chain.append(parent)
        covered.update(chain)
        tokens: list[int] = []
        places: dict[int, int] = {}
        for number in reversed(chain):
            start, end, *_ = pieces[number]
            if number in spans:
                places |= {index: len(tokens) + index - start for index in range(start, end)}
            tokens += row.tokens[start:end]
        yield Branch(tuple(tokens), places)


class ServedTeacher:
    """The base model of the vLLM server at `url`, which scores histories at temperature 1.

    `field` is the setting that names the server. The server must run until the run ends, with
    the same weights. The environment variable VLLM_API_KEY is its key.

    Errors: ConfigError if there is no vLLM server at `url`, or one with another tokenizer.
    """

    def __init__(self, url: str, tokenizer: PreTrainedTokenizerBase, *, field: str) -> None:
        self.field = field
        token = os.environ.get("VLLM_API_KEY")
        self._link = ServerLink(url, timeout=600, token=token, field=field)
        try:
            self._model, self._longest = self._checked(tokenizer)
        except BaseException:
            self.close()
            raise

    def evaluate(self, rows: Sequence[Row]) -> list[Outputs]:
        """Returns the log-probabilities of the action tokens of each row, and no values. Each
        branch of a row is one request; requests run at the same time.

        Errors: ConfigError for a history that is longer than the server takes; ServerLost.
        """
        of_rows = [list(branches(row)) for row in rows]
        asked = [branch for of_row in of_rows for branch in of_row]
        longest, room = max((len(b.tokens) for b in asked), default=0), self._longest
        if longest > room:
            raise ConfigError(
                f"{self.field}: a history has {longest} tokens, and the server at {self._link.url} "
                f"scores at most {room}; restart it with --max-model-len {longest + 1} or more"
            )
        try:
            begun = self._link.begin(_COMPLETE, [self._body(branch) for branch in asked])
            answers = self._link.wait(begun)
        except ServerRefused as error:
            self._link.lost(f"does not score a history ({error})")
        outputs, left = [], iter(answers)
        for row, of_row in zip(rows, of_rows, strict=True):
            scores: dict[int, float] = {}
            for branch in of_row:
                scores |= self._scores(branch, next(left))
            outputs.append(_outputs(row, scores))
        return outputs

    def close(self) -> None:
        self._link.close()

    def _checked(self, tokenizer: PreTrainedTokenizerBase) -> tuple[str, int]:
        """The name of the served base model, and the longest history that it scores."""
        url = self._link.url
        try:
            listed = read_as(ListedModels, self._link.call("GET", "/v1/models", timeout=30)).data
            cards = [c for c in listed if c.parent is None and c.max_model_len is not None]
            if not cards:
                raise BadAnswer("has no model with a max_model_len")
            name, longest = cards[0].id, cards[0].max_model_len or 0
            body = {"model": name, "prompt": TEXT, "add_special_tokens": False}
            served = read_as(Tokenized, self._link.call("POST", "/tokenize", body)).tokens
        except (ServerLost, ServerRefused, BadAnswer) as error:
            raise ConfigError(
                f"{self.field}: no vLLM server at {url} ({error}); start it first, and give its URL"
            ) from None
        if served != tokenizer.encode(TEXT, add_special_tokens=False):
            raise ConfigError(
                f"{self.field}: the server at {url} has another tokenizer than the model that it "
                "teaches; serve a model of the same tokenizer"
            )
        return name, longest - 1  # a request samples one token

    def _body(self, branch: Branch) -> dict[str, Any]:
        return {
            "model": self._model,
            "prompt": branch.tokens,
            "prompt_logprobs": 0,  # of the prompt's own tokens
            "max_tokens": 1,
            "temperature": 1.0,
        }

    def _scores(self, branch: Branch, answer: Any) -> dict[int, float]:
        """The log-probability of each action token, by its index in the row."""
        try:
            (choice,) = read_as(_Completed, answer).choices
        except BadAnswer as error:
            self._link.lost(str(error))
        entries = choice.prompt_logprobs
        if len(entries) != len(branch.tokens):
            self._link.lost(f"scored {len(entries)} tokens of a history of {len(branch.tokens)}")
        scores = {}
        for index, place in branch.places.items():
            scored = (entries[place] or {}).get(str(branch.tokens[place]))
            if scored is None or scored.logprob < IMPOSSIBLE:
                self._link.lost("scored a history without the log-probability of each token")
            scores[index] = scored.logprob
        return scores


def _outputs(row: Row, scores: Mapping[int, float]) -> Outputs:
    tokens = [index for span in row.spans for index in range(span.start, span.end)]
    logprobs = torch.tensor([scores[index] for index in tokens], dtype=torch.float32)
    return Outputs(logprobs=logprobs, entropy=None, values=torch.empty(0))
