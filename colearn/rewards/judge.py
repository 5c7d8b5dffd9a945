"""An LLM judge at an OpenAI-compatible endpoint as a reward function."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from colearn.bounds import Count, Positive, check_bounds
from colearn.contract.reward import PromptOrText, RewardFunction, text_of
from colearn.errors import ConfigError

from .spent import Spent
from .verdicts import Verdict, Verdicts
from .waiting import finish

RUBRIC = (
    "Rate how well the answer responds to the task.\n\nTask:\n{prompt}\n\nAnswer:\n{completion}\n\n"
    "Reply with one number from {lowest} (useless) to {highest} (perfect), and nothing else."
)
KEY = "COLEARN_JUDGE_TOKEN"
"""Environment variable with the endpoint's key."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class Judge(RewardFunction):
    """A language model scores each completion; the score is scaled to [0, 1].

    The last number in the judge's reply is the score. Verdicts are cached on disk, so a resumed run
    pays the same rewards and asks nothing twice. The key is read from COLEARN_JUDGE_TOKEN.

    Wrong when the judge is not reliable: the policy learns what the judge likes.

    Errors: ConfigError for a setting; RemoteError if all attempts fail and `failure_reward` is not
    set.
    """

    url: str
    """URL of an OpenAI-compatible endpoint."""
    model: str | None = None
    """None: the server's default model."""
    rubric: str = RUBRIC
    """The judge's prompt. `{prompt}`, `{completion}`, `{lowest}`, `{highest}` and the data's
    columns are filled in."""
    lowest: float = 0.0
    """Lowest score of the scale, which becomes 0."""
    highest: float = 10.0
    """Highest score of the scale, which becomes 1."""
    max_tokens: Count = 16
    """Token limit of a verdict."""
    timeout: Positive = 60.0
    """Seconds per attempt."""
    retries: int = 2
    """Attempts after the first. A reply without a score in range is such an attempt, too."""
    failure_reward: float | None = None
    """Reward of a completion that could not be judged; None ends the run with an error."""
    prices: tuple[float, float] | None = None
    """Cost of a million prompt tokens and of a million completion tokens."""
    spent: Spent = field(default_factory=Spent, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_bounds(self)
        if not self.lowest < self.highest:
            raise ConfigError(f"lowest: must be below highest, got {self.lowest}")
        if self.retries < 0:
            raise ConfigError(f"retries: must be 0 or more, got {self.retries}")
        self._endpoint()
        _fields(self.rubric)

    @property
    def label(self) -> str:
        return "judge"

    def costs(self) -> Mapping[str, float]:
        """Calls, cached verdicts, failures, tokens and, with `prices`, the price."""
        totals = self.spent.totals()
        costs = {f"judge {name.replace('_', ' ')}": total for name, total in totals.items()}
        if self.prices is not None:
            paid = zip(self.prices, ("prompt_tokens", "completion_tokens"), strict=True)
            costs["judge price"] = sum(p * totals.get(name, 0.0) / 1e6 for p, name in paid)
        return costs

    def __call__(
        self,
        prompts: Sequence[PromptOrText],
        completions: Sequence[PromptOrText],
        **columns: Any,
    ) -> list[float | None]:
        """Scores in [0, 1]; all completions are judged at the same time."""
        asked = [
            self._text(prompt, completion, {name: column[k] for name, column in columns.items()})
            for k, (prompt, completion) in enumerate(zip(prompts, completions, strict=True))
        ]
        return finish(self._all(asked))

    async def _all(self, asked: Sequence[str]) -> list[float | None]:
        from colearn.client.endpoint import Endpoint

        endpoint: Endpoint = self._endpoint()
        await endpoint.open()
        try:
            return list(await asyncio.gather(*(self._one(endpoint, text) for text in asked)))
        finally:
            await endpoint.close()

    async def _one(self, endpoint: Any, text: str) -> float | None:
        from colearn.client.endpoint import AgentLost

        question = [self.url, self.model, self.max_tokens, self.lowest, self.highest, text]
        cache = Verdicts()
        verdict = cache.read(question)
        if verdict is None:
            try:
                verdict = await self._ask(endpoint, text)
            except AgentLost:
                self.spent.add(failures=1)
                if self.failure_reward is None:
                    raise
                return self.failure_reward
            cache.write(question, verdict)
        else:
            self.spent.add(cached=1)
        return (verdict.score - self.lowest) / (self.highest - self.lowest)

    async def _ask(self, endpoint: Any, text: str) -> Verdict:
        """Errors: AgentLost if no attempt gives a score in range; Refused for a wrong request."""
        from colearn.client.endpoint import AgentLost

        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": text}],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        if self.model is not None:
            body["model"] = self.model
        for _ in range(self.retries + 1):
            answer = await endpoint.request("POST", "/chat/completions", lambda attempt: body)
            said = _content(answer)
            usage = answer.get("usage")
            tokens = usage if isinstance(usage, dict) else {}
            used = {
                name: int(tokens.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")
            }
            self.spent.add(calls=1, **used)
            numbers = _NUMBER.findall(said)
            if numbers and self.lowest <= float(numbers[-1]) <= self.highest:
                return Verdict(score=float(numbers[-1]), **used)
        raise AgentLost(
            endpoint.line(
                f"replied {said[:60]!r}, no number from {self.lowest:g} to {self.highest:g}"
            )
        )

    def _endpoint(self) -> Any:
        from colearn.client.endpoint import Endpoint

        return Endpoint(
            self.url,
            name="judge",
            api_key=os.environ.get(KEY),
            timeout=self.timeout,
            retries=self.retries,
        )

    def _text(self, prompt: PromptOrText, completion: PromptOrText, row: Mapping[str, Any]) -> str:
        known = {
            **row,
            "prompt": text_of(prompt),
            "completion": text_of(completion),
            "lowest": f"{self.lowest:g}",
            "highest": f"{self.highest:g}",
        }
        missing = _fields(self.rubric) - set(known)
        if missing:
            raise ConfigError(
                f"task.reward.rubric: the data have no column '{min(missing)}'; write a literal "
                "brace twice"
            )
        return self.rubric.format_map(known)


def _fields(rubric: str) -> set[str]:
    """The names in a rubric. Errors: ConfigError unless they are plain and one is `completion`."""
    try:
        parts = [part[1:] for part in Formatter().parse(rubric) if part[1] is not None]
    except ValueError as error:
        raise ConfigError(f"rubric: {error}; write a literal brace twice") from None
    for name, form, conversion in parts:
        if not str(name).isidentifier() or form or conversion:
            raise ConfigError(f"rubric: '{{{name}}}' is no plain name; write a literal brace twice")
    names = {str(name) for name, _, _ in parts}
    if "completion" not in names:
        raise ConfigError("rubric: lacks {completion}, the text that is judged; add it")
    return names


def _content(answer: Mapping[str, Any]) -> str:
    """The text of a chat completion; empty if the reply has another form."""
    try:
        said = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return ""
    return said if isinstance(said, str) else ""
