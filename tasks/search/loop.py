"""UnityMAS-O's workflow C: the iterative search loop of M-ASK."""

from __future__ import annotations

from typing import Any

from colearn.programs.workflow import Team
from colearn.programs.workflow.qa import Passage, f1

from .base import SearchTeam
from .question import Question
from .reading import read_tagged

ROUNDS = 3
END = {"full": "<end>", "compact": "stop"}


class IterativeSearch(SearchTeam):
    """A team that searches repeatedly before it answers.

    The planner writes a first knowledge state and an answer a_0. Up to three rounds follow: the
    searcher writes a query, the summarizer reads the results, the updater rewrites the knowledge,
    and the concluder answers.

    Rewards (sec. 6): the planner earns F1(a_0), and the concluder of round t earns F1(a_t). The
    searcher, summarizer and updater of round t earn F1(a_t) - F1(a_{t-1}). A searcher that ends the
    episode earns 0. The team's reward is the F1 of the last answer, which is F1(a_0) plus all
    differences F1(a_t) - F1(a_{t-1}).
    """

    agents = ("planner", "searcher", "summarizer", "updater", "concluder")
    horizon = 1 + 4 * ROUNDS

    async def run(self, team: Team, item: Question) -> None:
        """Plan, then rounds of search until the searcher ends the episode or no round is left."""
        question = item.text
        plan = await self.ask(team, "planner", question=question)
        knowledge, answer = self._read_plan(plan)
        score = self.score(team, item, answer)
        team.reward(score, to=plan)
        state, retrieved, searches = plan, list[Passage](), 0
        for _ in range(ROUNDS):
            known: dict[str, Any] = {"question": question, "knowledge": knowledge}
            query = await self.ask(team, "searcher", after=state, **known)
            if END[self.prompt] in query:
                break
            passages = await self.passages(team, query)
            retrieved, searches = [*retrieved, *passages], searches + 1
            summary = await self.ask(team, "summarizer", passages, query=query)
            state = await self.ask(
                team, "updater", after=(summary, state), summary=summary, **known
            )
            knowledge = " ".join(state.split()[: self.longest])
            answered = await self.ask(team, "concluder", question=question, knowledge=knowledge)
            before, score = score, f1(answered, item.answers)
            team.reward(score, to=answered)
            team.reward(score - before, to=(query, summary, state))
            self.score(team, item, answered)
        self.note_search(team, item, retrieved, searches)
        team.reward(score)

    def _read_plan(self, plan: str) -> tuple[str, str]:
        """Parses the knowledge and the first answer; with compact prompts, the whole plan is
        both."""
        if self.prompt == "compact":
            return plan, plan
        return read_tagged(plan, "knowledge") or "", read_tagged(plan, "answer") or ""
