"""Rewriter, reranker, answerer: the search team of MHGPO (Fig. 1, App. B)."""

from __future__ import annotations

import asyncio

from colearn.programs.workflow import Team

from .base import MOST_QUERIES, SearchTeam
from .question import Question
from .reading import merged, read_queries, read_ranking

PENALTY_QUERIES = -0.5
PENALTY_RANKING = -0.5
PENALTY_LENGTH = -1.0


class MHGPOTeam(SearchTeam):
    """A team of a rewriter, a reranker and an answerer.

    The rewriter splits the question into queries. The reranker selects among the found passages.
    The answerer answers. The team's reward is the answer's F1. Each role is penalised for its own
    output: the rewriter with -0.5 for more than four queries, the reranker with -0.5 for ids that
    repeat or do not exist, and the answerer with -1 for an overlong answer.
    """

    agents = ("rewriter", "reranker", "answerer")
    measures = (*SearchTeam.measures, *(f"penalty_{role}" for role in agents))
    horizon = 3

    async def run(self, team: Team, item: Question) -> None:
        """Runs the three roles once, in order."""
        rewritten = await self.ask(team, "rewriter", question=item.text)
        queries = read_queries(rewritten)
        if len(queries) > MOST_QUERIES:
            self.penalize(team, "rewriter", PENALTY_QUERIES)
        lists = await asyncio.gather(
            *(self.passages(team, query) for query in queries[:MOST_QUERIES])
        )
        passages = merged(lists)
        ranked = await self.ask(team, "reranker", passages, question=item.text)
        ranking = read_ranking(ranked, len(passages))
        if not ranking.valid:
            self.penalize(team, "reranker", PENALTY_RANKING)
        chosen = [passages[number] for number in ranking.chosen]
        self.note_search(team, item, chosen, len(queries))
        answer = await self.ask(team, "answerer", chosen, question=item.text)
        if len(answer.split()) > self.longest:
            self.penalize(team, "answerer", PENALTY_LENGTH)
        team.reward(self.score(team, item, answer))

    def penalize(self, team: Team, role: str, penalty: float) -> None:
        """Adds a penalty to a role's reward and records it (Figure 12)."""
        team.reward(penalty, to=role)
        team.measure(**{f"penalty_{role}": penalty})
