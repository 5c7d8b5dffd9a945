"""A callback that pushes a finished run's agents to a hub."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from colearn.contract import Callback, StartEvent
from colearn.runs.record import open_run
from colearn.text.notes import note, speaks

from .agent_folders import export_run
from .hub import push_agents


@dataclass(frozen=True, kw_only=True)
class PushToHub(Callback):
    """Exports the agents of the finished run and pushes one repository per agent, as
    `colearn export --push` does. An interrupted run is not pushed."""

    to: str
    """User or organisation on the hub."""
    team: str | None = None
    """The team's name; None selects the name of the run's folder."""
    private: bool = False
    """Whether new repositories are private."""
    adapter: bool = False
    """Whether to push LoRA adapters, which name their base, instead of merged weights."""
    step: Literal["last", "best"] = "last"
    """The checkpoint to push; `best` selects the checkpoint with the best evaluation."""
    _folder: list[Path] = field(default_factory=list, init=False, repr=False, compare=False)

    def on_start(self, event: StartEvent) -> None:
        self._folder[:] = [event.folder]

    def on_end(self) -> None:
        """Export and push the agents. Errors: as for `export_run` and `push_agents`; the run is
        already finished."""
        folder = self._folder[0].absolute()
        if not speaks() or open_run(folder).status != "finished":
            return
        with tempfile.TemporaryDirectory() as scratch:
            folders = export_run(folder, scratch, adapter=self.adapter, step=self.step)
            pushed = push_agents(folders, self.to, self.team or folder.name, private=self.private)
        note(f"pushed {', '.join(pushed.agents.values())}; collection: {pushed.collection}")
