"""`evaluate` plays loaded agents on a task, without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from colearn.config import build_algorithm, build_task, load_config
from colearn.config.parts import build_part
from colearn.contract import Cast
from colearn.contract.checked_task import check_frame
from colearn.entry.python.kinds import DataGiven, RewardGiven, TaskGiven
from colearn.entry.python.named import Names
from colearn.entry.python.settings import settings_from
from colearn.errors import ConfigError, ShortTraceback, nearest
from colearn.models.load import resolve_device
from colearn.runs.record.checkpoints import Step
from colearn.training.evaluation.evaluate import evaluate_team
from colearn.training.processes import Processes

from .loaded import LoadedAgent, load_team


def evaluate(
    task: TaskGiven | None,
    agents: str | Path | Mapping[str, LoadedAgent],
    *,
    data: DataGiven | None = None,
    reward: RewardGiven | None = None,
    step: Step = "last",
    seed: int = 0,
    device: str = "auto",
    **settings: Any,
) -> dict[str, float]:
    """Play a task's evaluation with trained agents and return the metrics. Every agent acts alone,
    on what it observes, and nothing is learned.

    task, data, reward: as for `train`; the task need not be the one of the training. agents: a
    folder of exported agents; or a run, whose checkpoint `step` is read; or loaded agents by their
    name in the task, such as one agent of each of two runs. settings: settings of the section
    `evaluation`, such as `split="train"`, `episodes=100` or `greedy=True`.

    For a run's own task and seed, the episodes are those of the run's evaluation.

    Errors: ConfigError for an unknown setting, or without an agent for each seat; the errors of
    `load_team`; TaskError if the task breaks its contract.
    """
    with ShortTraceback():
        given = {"data": data, "reward": reward, "evaluation": settings}
        plain = settings_from(task, Names(), given, seed)  # type: ignore[arg-type]
        config = load_config({**plain, "algorithm": "untrained"})
        if config.evaluation.exact:
            raise ConfigError(
                "exact: agents without their run are sampled; use evaluate of the run's result"
            )
        built = build_task(config)
        with closing(built):
            check_frame(built)
            if isinstance(agents, str | Path):
                agents = load_team(agents, built.agents, step=step, device=device)
            _check_agents(agents, built.agents)
            return evaluate_team(
                built,
                {seat: agents[seat].player for seat in built.agents},
                config.evaluation,
                seed=config.run.seed,
                credit=build_algorithm(config).checked_parts().credit,
                cast=build_part(Cast, config.cast, "cast"),
                processes=Processes(resolve_device(device)),
            ).metrics


def _check_agents(agents: Mapping[str, LoadedAgent], seats: Sequence[str]) -> None:
    """Errors: ConfigError unless each seat has a loaded agent."""
    if not isinstance(agents, Mapping):
        kind = type(agents).__name__
        raise ConfigError(f"agents: is a {kind}; give a folder, or loaded agents by their name")
    for name in agents:
        if name not in seats:
            raise ConfigError(f"agents.{name}: the task has no such agent; {nearest(name, seats)}")
    for seat in seats:
        if seat not in agents:
            raise ConfigError(f"agents: none for the task's '{seat}'; load one for each seat")
        if not isinstance(agents[seat], LoadedAgent):
            kind = type(agents[seat]).__name__
            raise ConfigError(f"agents.{seat}: is a {kind}; give an agent of colearn.load_agent")
