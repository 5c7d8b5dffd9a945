"""Progress display of one run, including its restarts."""

from __future__ import annotations

from colearn.config import Config
from colearn.runs.comparison.progress import Goal, Watcher, watch
from colearn.runs.record import Episode, Progress, RunFolder
from colearn.runs.record.folder import EPISODES
from colearn.runs.record.tail import EpisodesTail
from colearn.text.notes import speaks
from colearn.text.printable import printable
from colearn.text.terminal import Terminal
from colearn.training.loop import Experiment, Report


class RunProgress:
    """Shows how a run starts, advances and ends, on rank 0 only."""

    def __init__(self, config: Config) -> None:
        algorithm = config.algorithm.name.rpartition(":")[2]
        self._name = f"{algorithm} seed {config.run.seed}"
        self._watcher: Watcher | None = None

    def started(self, experiment: Experiment) -> Report:
        """Show the start of a run; the returned function receives the experiment's reports."""
        run, at = experiment.team.run, experiment.progress.iteration
        self.headline, train = run.headline, run.config.train
        if self._watcher is None:
            goal = Goal(train.environment_steps, train.iterations, self.headline.metric)
            self._watcher = watch(Terminal(quiet=not speaks()), {self._name: goal})
        self._watcher.started(self._name, f"resumed at iteration {at}" if at else "started")
        folder = RunFolder(experiment.folder)
        self._tail = folder.tail(self.headline.metric)
        self._episodes = EpisodesTail(folder.path / EPISODES)
        return self._report

    def ended(self, outcome: str) -> None:
        """Show the outcome."""
        if self._watcher is not None:
            self._watcher.ended(self._name, outcome)

    def _report(self, progress: Progress, metrics: dict[str, float]) -> None:
        assert self._watcher is not None
        if self._tail.advance():
            self._watcher.advanced(self._name, self._tail.status)
        episode = self._episodes.first(progress.iteration)
        if episode is not None:
            self._watcher.noted(self._name, answer_line(episode))


_LONGEST = 100
"""Maximum number of characters of an item and of an answer in a line of the display."""


def answer_line(episode: Episode) -> str:
    """One line with the first answer of an evaluated episode that is not empty, and the return."""
    answers = ((agent, text) for turn in episode.turns for agent, text in turn.actions.items())
    agent, text = next(((a, t) for a, t in answers if t.strip()), ("", ""))
    answer = f"{_short(agent)} answers: {_short(text)}" if agent else "all answers are empty"
    value = "" if episode.value is None else f"return {episode.value:.3f}, "
    return f"iteration {episode.iteration}, {value}item {_short(episode.item)}; {answer}"


def _short(text: str) -> str:
    line = " ".join(printable(text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
