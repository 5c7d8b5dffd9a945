"""A reward function that asks an LLM judge at an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any

from colearn.contract.bounds import Count, Positive, check_bounds
from colearn.contract.reward import PromptOrText, RewardFunction, text_of
from colearn.errors import ConfigError
from colearn.text.reasoning import without_reasoning

from .judge_score import read_score
from .spent import Spent
from .verdict_cache import JudgeScore, Verdicts
from .waiting import finish

if TYPE_CHECKING:
    from colearn.deploy.client.endpoint import Endpoint

RUBRIC = (
    "Rate how well the answer responds to the task.\n\nTask:\n{prompt}\n\nAnswer:\n{completion}\n\n"
    "Reply with one line and nothing else:\nScore: N\n"
    "where N is a number from {lowest} (useless) to {highest} (perfect)."
)
KEY = "COLEARN_JUDGE_TOKEN"
"""Environment variable with the endpoint's API key."""
_TOKENS = ("prompt_tokens", "completion_tokens")
_MOST_TOKENS = 10**9
"""Number of tokens per reply above which its `usage` is considered wrong."""
_READING = "score line, own score, one scale"
"""Part of a verdict's cache key, so that verdicts parsed by a different method are not reused."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """The reward of one completion, and the way in which that reward was determined."""

    reward: float
    unreadable: int = 0
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class Judge(RewardFunction):
    """A language model scores each completion; the score is scaled to [0, 1].

    The judge states the score on a line `Score: N`, as `<score>N</score>`, in a JSON object with
    the key `score`, or as a number alone. A reply that was truncated, states no score in range, or
    states two scores is unreadable, and the judge is asked again. Verdicts are cached on disk, so a
    resumed run pays the same rewards and sends no request twice. The API key is read from
    COLEARN_JUDGE_TOKEN.

    Metrics: `unreadable`, the number of unreadable replies per completion, and `failed`, the share
    of completions that were paid `failure_reward`.

    Wrong when the judge is not reliable: the policy then learns the judge's biases.

    Errors: ConfigError for an invalid setting; RemoteError if all attempts fail and
    `failure_reward` is not set.
    """

    url: str
    """URL of an OpenAI-compatible endpoint."""
    model: str | None = None
    """Model name; None selects the server's default model."""
    rubric: str = RUBRIC
    """The template of the judge's prompt, which asks for `Score: N`. `{prompt}`, `{completion}`,
    `{lowest}`, `{highest}` and names of the data's columns are filled in."""
    lowest: float = 0.0
    """Lowest score of the scale, which becomes the reward 0."""
    highest: float = 10.0
    """Highest score of the scale, which becomes the reward 1."""
    max_tokens: Count = 16
    """Token limit of a verdict."""
    timeout: Positive = 60.0
    """Time limit per attempt in seconds."""
    retries: int = 2
    """Number of attempts after the first. An unreadable reply counts as an attempt."""
    failure_reward: float | None = None
    """Reward of a completion that could not be judged; None ends the run with an error."""
    prices: tuple[float, float] | None = None
    """Price of a million prompt tokens and price of a million completion tokens."""
    spent: Spent = field(default_factory=Spent, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_bounds(self)
        for name in ("lowest", "highest", "failure_reward"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ConfigError(f"{name}: must be finite, got {value}")
        if not self.lowest < self.highest:
            raise ConfigError(f"lowest: must be below highest, got {self.lowest}")
        if self.retries < 0:
            raise ConfigError(f"retries: must be 0 or more, got {self.retries}")
        self._endpoint()
        _fields(self.rubric)

    @property
    def label(self) -> str:
        return "judge"

    @property
    def measures(self) -> tuple[str, ...]:
        return ("unreadable", "failed")

    def costs(self) -> Mapping[str, float]:
        """Totals of calls, cached verdicts, unreadable replies, failures, tokens, calls with an
        unknown number of tokens and, with `prices`, the price."""
        totals = self.spent.totals()
        costs = {f"judge {name.replace('_', ' ')}": total for name, total in totals.items()}
        if self.prices is not None:
            paid = zip(self.prices, _TOKENS, strict=True)
            costs["judge price"] = sum(p * totals.get(name, 0.0) / 1e6 for p, name in paid)
        return costs

    def __call__(
        self,
        prompts: Sequence[PromptOrText],
        completions: Sequence[PromptOrText],
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Scores in [0, 1]; all completions are judged at the same time.

        `log_metric` receives the name and value of each metric, as in TRL.
        """
        used = {name: columns[name] for name in sorted(_fields(self.rubric) & set(columns))}
        texts = [
            self._text(prompt, completion, {name: column[k] for name, column in used.items()})
            for k, (prompt, completion) in enumerate(zip(prompts, completions, strict=True))
        ]
        judged = finish(self._all(texts))
        if log_metric is not None and judged:
            log_metric("unreadable", sum(verdict.unreadable for verdict in judged) / len(judged))
            log_metric("failed", sum(verdict.failed for verdict in judged) / len(judged))
        return [verdict.reward for verdict in judged]

    async def _all(self, texts: Sequence[str]) -> list[_Judged]:
        endpoint = self._endpoint()
        await endpoint.open()
        try:
            return list(await asyncio.gather(*(self._one(endpoint, text) for text in texts)))
        finally:
            await endpoint.close()

    async def _one(self, endpoint: Endpoint, text: str) -> _Judged:
        from colearn.deploy.client.endpoint import AgentLost

        scale = self.lowest, self.highest
        question = [_READING, self.url, self.model, self.max_tokens, *scale, text]
        cache, unreadable = Verdicts(), list[str]()
        verdict = cache.read(question, *scale)
        if verdict is None:
            try:
                verdict = await self._ask(endpoint, text, unreadable)
            except AgentLost:
                self.spent.add(failures=1)
                if self.failure_reward is None:
                    raise
                return _Judged(self.failure_reward, len(unreadable), failed=True)
            cache.write(question, verdict)
        else:
            self.spent.add(cached=1)
        reward = (verdict.score - self.lowest) / (self.highest - self.lowest)
        return _Judged(reward, len(unreadable))

    async def _ask(self, endpoint: Endpoint, text: str, unreadable: list[str]) -> JudgeScore:
        """The judge's verdict; the reason for each unreadable reply is added to `unreadable`.

        Errors: AgentLost if no attempt gives a score; Refused if the server rejects the request.
        """
        from colearn.deploy.client.completion import FailedAnswer
        from colearn.deploy.client.endpoint import AgentLost, Refused

        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": text}],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        if self.model is not None:
            body["model"] = self.model
        for _ in range(self.retries + 1):
            answer = score = None
            try:
                answer = await endpoint.request("POST", "/chat/completions", lambda attempt: body)
                score = self._score(answer)
            except Refused as refusal:
                if not 200 <= refusal.status < 300:
                    raise
                reason = str(refusal)  # a success whose body is no JSON object
            except FailedAnswer as failed:
                reason = endpoint.line(endpoint.clean(str(failed)))
            used = _tokens(answer)
            self.spent.add(calls=1, **(used or {"calls_without_usage": 1}))
            if score is not None:
                return JudgeScore(score=score, **(used or {}))
            self.spent.add(unreadable=1)
            unreadable.append(reason)
        raise AgentLost(unreadable[-1])

    def _score(self, answer: Mapping[str, Any]) -> float:
        """The score in a chat completion. Errors: FailedAnswer for an unreadable reply."""
        from colearn.deploy.client.completion import FailedAnswer, read_completion

        reply = read_completion({**answer, "usage": None})  # `_tokens` accepts any usage
        if reply.finish == "length":
            raise FailedAnswer(
                "gave no whole reply; raise task.reward.max_tokens if it was cut at "
                f"{self.max_tokens} tokens"
            )
        score = read_score(reply.text, self.lowest, self.highest)
        if score is None:
            raise FailedAnswer(
                f"replied {reply.text[:60]!r}, no line 'Score: N' with one N from "
                f"{self.lowest:g} to {self.highest:g}; ask for it in task.reward.rubric"
            )
        return score

    def _endpoint(self) -> Endpoint:
        from colearn.deploy.client.endpoint import Endpoint

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
            "completion": without_reasoning(text_of(completion)),
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
    """The field names in a rubric. Errors: ConfigError unless they are plain names that include
    `completion`."""
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


def _tokens(answer: Any) -> dict[str, int] | None:
    """The token counts that a reply reports; None if it reports no valid counts."""
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    tokens = usage if isinstance(usage, Mapping) else {}
    counts = {name: tokens.get(name) for name in _TOKENS}
    if all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in counts.values()):
        return {name: int(count or 0) for name, count in counts.items()}
    return None
