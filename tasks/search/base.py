"""Base class of the search teams: questions, retriever tool, scores, warm-start actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from colearn.contract import Headline
from colearn.errors import ConfigError, nearest
from colearn.programs.workflow import Answer, Team, Tool, ToolError, Workflow, WorkflowState
from colearn.programs.workflow.qa import (
    BM25,
    Dense,
    Passage,
    Passages,
    Retriever,
    accuracy,
    exact_match,
    f1,
)

from ..checks import check_choice, check_split, check_whole
from .guess import guess
from .items import load_corpus, load_questions
from .prompts import COMPACT, FULL, SYSTEM, compact_documents, full_documents
from .question import Question
from .reading import count_words, within
from .world import KINDS, MOST_PEOPLE, MOST_TOWNS, World

MOST_QUERIES = 4
"""Maximum number of queries; further ones are penalised (MHGPO, App. B) and not searched."""


class SearchTeam(Workflow[Question]):
    """A team of several roles that answers questions from a corpus.

    The metric `recall` is the share of supporting passages that the team found.

    `data`: 'generated', questions about an invented country, ready within seconds on any machine;
    'packaged', a few general questions; 'hotpotqa', '2wiki', 'musique' or 'nq' from the hub; or the
    path of a .jsonl/.csv file. `corpus` is a folder to search, required for data from the hub or
    from a file. `encoder` is a sentence encoder (folder or hub name) that replaces BM25 as the
    search method. `longest` is the maximum number of words of an answer.

    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra.
    """

    measures: tuple[str, ...] = (
        *("f1", "em", "accuracy", "recall"),
        *("queries", "documents", "answer_words"),
    )
    headline = Headline("f1")
    searches = True
    """Whether the team needs a corpus."""

    def __init__(
        self,
        *,
        data: str = "generated",
        corpus: str | None = None,
        encoder: str | None = None,
        kinds: Sequence[str] = KINDS,
        people: int = 48,
        towns: int = 12,
        documents: int = 3,
        longest: int = 30,
        prompt: Literal["full", "compact"] = "full",
    ) -> None:
        for kind in kinds:
            if kind not in KINDS:
                raise ConfigError(f"task.kinds: unknown kind '{kind}'; {nearest(kind, KINDS)}")
        check_choice("prompt", prompt, ("full", "compact"))
        check_whole("documents", documents, 1)
        check_whole("longest", longest, 1)
        check_whole("people", people, 1, MOST_PEOPLE)
        check_whole("towns", towns, 1, MOST_TOWNS)
        self.documents, self.longest, self.prompt = documents, longest, prompt
        world = World(people=people, towns=towns)
        self._questions, packaged = load_questions(data, world, kinds)
        searched = load_corpus(corpus, packaged, data) if self.searches else Passages(())
        self.retriever: Retriever = BM25(searched) if encoder is None else Dense(searched, encoder)
        self.tools = (Tool(self.search),)
        self.reward_range = None

    def items(self, split: str) -> Sequence[Question]:
        """The questions of 'train' or 'test'."""
        check_split(split)
        return self._questions[split]

    async def search(self, query: str) -> tuple[Passage, ...]:
        """Passages that share words with the query, best first."""
        return self.retriever.search(query, self.documents)

    async def passages(self, team: Team, query: str) -> tuple[Passage, ...]:
        """The results of `search`; if it fails, one passage that contains the reason."""
        result = await team.search(query)
        return (Passage("no result", result),) if isinstance(result, ToolError) else result

    async def ask(
        self,
        team: Team,
        role: str,
        passages: Sequence[Passage] = (),
        *,
        prompt: str | None = None,
        after: Answer | Iterable[Answer] | None = None,
        **fields: Any,
    ) -> Answer:
        """Asks a role and returns the role's answer. The prompt of the role, or the prompt named
        `prompt`, is filled with the passages and the other fields."""
        compact = self.prompt == "compact"
        fields["documents"] = (compact_documents if compact else full_documents)(passages)
        fields["limit"] = self.longest
        name = prompt or role
        text = (COMPACT if compact else FULL)[name].format(**fields)
        system = None if compact else SYSTEM.get(name)
        if system is not None:
            system = system.format(**fields)
        return await team.ask(role, text, after=after, system=system)

    def score(self, team: Team, item: Question, answer: str) -> float:
        """Returns the F1 of an answer, and records the episode's metrics under the assumption that
        this answer is the last one."""
        score = f1(answer, item.answers)
        team.measure(
            f1=score,
            em=exact_match(answer, item.answers),
            accuracy=accuracy(answer, item.answers),
            answer_words=count_words(answer),
        )
        return score

    def note_search(
        self, team: Team, item: Question, passages: Sequence[Passage], queries: int
    ) -> None:
        """Records the number of queries, the number of different passages kept, and recall, which
        is the share of the supporting passages that were kept."""
        titles = {passage.title for passage in passages}
        team.measure(queries=queries, documents=len(set(passages)))
        if item.titles:
            team.measure(recall=sum(title in titles for title in item.titles) / len(item.titles))

    def proper(self, text: str) -> bool:
        """Whether a text can be an answer, a summary or an extract: not empty, and not too long."""
        return within(text, self.longest)

    def metrics(self, state: WorkflowState[Question]) -> Mapping[str, float | None]:
        """As in a workflow; `recall` is None if the supporting passages are unknown."""
        metrics = super().metrics(state)
        return metrics if state.item.titles else {**metrics, "recall": None}

    def global_info(self, state: WorkflowState[Question]) -> str:
        """m_t: the turn, from 1. The team is paid only at the end, so the last reward is 0 until
        then."""
        return f"turn {min(state.turn + 1, self.horizon)}"

    def privileged_info(self, state: WorkflowState[Question]) -> str:
        """The answer."""
        return f"answer {state.item.answers[0]}"

    def legal_action(
        self, state: WorkflowState[Question], agent: str, rng: np.random.Generator
    ) -> str:
        """An uncoordinated action: words from the role's prompt in the requested format."""
        prompt = state.next_calls()[agent].text
        return guess(agent, state.item.text.split(), prompt.split("\n")[1:], rng)
