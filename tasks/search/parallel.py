"""UnityMAS-O's workflow A, which searches several queries in parallel and then answers."""

from __future__ import annotations

import asyncio

from colearn.programs.workflow import Team

from .base import MOST_QUERIES, SearchTeam
from .question import Question
from .reading import merged, read_queries

BAD_FORMAT = -1.0


class ParallelRetrieval(SearchTeam):
    """A team of a rewriter and an answerer.

    The rewriter decomposes the question into queries, which are searched in parallel; the answerer
    answers from all passages. The team's reward is the final F1. A role whose format is wrong gets
    a penalty of -1 (`credit: trajectory` gives r_v = F1 + r_fmt).
    """

    agents = ("rewriter", "answerer")
    horizon = 2

    async def run(self, team: Team, item: Question) -> None:
        """Runs the two roles once, in order."""
        rewritten = await self.ask(team, "rewriter", question=item.text)
        queries = read_queries(rewritten)
        if not 0 < len(queries) <= MOST_QUERIES:
            team.reward(BAD_FORMAT, to=rewritten)
        lists = await asyncio.gather(
            *(self.passages(team, query) for query in queries[:MOST_QUERIES])
        )
        passages = merged(lists)
        self.note_search(team, item, passages, len(queries))
        answer = await self.ask(team, "answerer", passages, question=item.text)
        if not self.proper(answer):
            team.reward(BAD_FORMAT, to=answer)
        team.reward(self.score(team, item, answer))
