"""One model that answers without searching: the single models of MHGPO's Table 1."""

from __future__ import annotations

import numpy as np

from colearn.programs.workflow import Team, WorkflowState

from .base import SearchTeam
from .question import Question

PENALTY_LENGTH = -1.0


class SingleModel(SearchTeam):
    """`answerer` alone answers the question.

    As in the task `search_mhgpo`, the reward is the answer's F1, with a penalty of -1 for an
    overlong answer. No corpus is read. The paper prints no prompt for its single models.
    """

    agents = ("answerer",)
    horizon = 1
    searches = False

    async def run(self, team: Team, item: Question) -> None:
        """Asks the agent for one answer."""
        answer = await self.ask(team, "answerer", prompt="single", question=item.text)
        if len(answer.split()) > self.longest:
            team.reward(PENALTY_LENGTH, to=answer)
        team.reward(self.score(team, item, answer))

    def legal_action(
        self, state: WorkflowState[Question], agent: str, rng: np.random.Generator
    ) -> str:
        """The answer to a random training question."""
        questions = self.items("train")
        return f" {questions[int(rng.integers(len(questions)))].answers[0]}"
