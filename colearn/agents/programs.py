"""Programs that can play any task."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import LegalActions, View
from colearn.contract.task_errors import asking
from colearn.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Says:
    """Answers every observation with the same text."""

    text: str = ""
    """The answer."""

    def act(self, view: View) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True)
class Legal:
    """Chooses a random legal action; the task must define `legal_action`."""

    def act(self, view: View) -> str:
        with asking(view.task, "legal_action"):
            action = LegalActions.of(view.task).legal_action(view.state, view.seat, view.rng)
        if action is None:
            raise ConfigError(
                "program: 'legal' needs a task with legal_action; name another program"
            )
        return action


NAMES = {
    "adopts": "colearn.tasks.tool_team.programs:Adopts",
    "equilibrium": "colearn.tasks.open_spiel.programs:Equilibrium",
    "legal": "colearn.agents.programs:Legal",
    "mcts": "colearn.tasks.open_spiel.programs:MCTS",
    "says": "colearn.agents.programs:Says",
}
"""Programs shipped with colearn, by name. Other packages add programs through the entry-point group
`colearn.programs`."""
