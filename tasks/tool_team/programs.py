"""A scripted planner, the partner for training a tool user alone."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import View
from colearn.errors import ConfigError

from .task import PLAN, ToolTeam


@dataclass(frozen=True, kw_only=True)
class Adopts:
    """A planner that adopts the tool user's proposal; without a proposal, the planner's answer is
    empty."""

    def act(self, view: View) -> str:
        """The proposal in the format of a planner's answer.

        Errors: ConfigError on a task without a tool user and a planner.
        """
        if not isinstance(view.task, ToolTeam):
            raise ConfigError(
                "program: 'adopts' plays the planner of sudoku, plan_path or sokoban; name another"
            )
        run = view.state.tool
        if run is None or run.answer is None:
            return ""
        return view.task.said(view.state.item, PLAN, run.answer)
