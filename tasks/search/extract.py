"""UnityMAS-O's workflow B, which extracts evidence between retrieval and answer."""

from __future__ import annotations

import asyncio
from typing import Any

from colearn.programs.workflow import Answer, Team
from colearn.programs.workflow.qa import Passage

from .base import MOST_QUERIES, SearchTeam
from .parallel import BAD_FORMAT
from .question import Question
from .reading import merged, read_queries


class RetrieveExtractAnswer(SearchTeam):
    """Workflow A (`search_parallel`) with an extraction step for each query.

    The extractor keeps the text that the answerer needs.

    Each query starts a branch, and the branches run at the same time. The extractor is a single
    role, which answers for one branch per turn.
    """

    agents = ("rewriter", "extractor", "answerer")
    horizon = 2 + MOST_QUERIES

    async def run(self, team: Team, item: Question) -> None:
        """Decomposes the question, searches and extracts for each query, and answers."""
        rewritten = await self.ask(team, "rewriter", question=item.text)
        queries = read_queries(rewritten)
        if not 0 < len(queries) <= MOST_QUERIES:
            team.reward(BAD_FORMAT, to=rewritten)

        async def evidence(query: str) -> tuple[tuple[Passage, ...], Answer]:
            passages = await self.passages(team, query)
            fields: dict[str, Any] = {"question": item.text, "query": query}
            return passages, await self.ask(team, "extractor", passages, **fields)

        written, queries = len(queries), queries[:MOST_QUERIES]
        branches = await asyncio.gather(*(evidence(query) for query in queries))
        for _, extract in branches:
            if not self.proper(extract):
                team.reward(BAD_FORMAT, to=extract)
        documents = merged([passages for passages, _ in branches])
        self.note_search(team, item, documents, written)
        notes = [
            Passage(query, extract) for query, (_, extract) in zip(queries, branches, strict=True)
        ]
        answer = await self.ask(team, "answerer", notes, question=item.text)
        if not self.proper(answer):
            team.reward(BAD_FORMAT, to=answer)
        team.reward(self.score(team, item, answer))
