"""Cross-play: teams assembled from the agents of different runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.config import Config, bind_agents
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.runs.record import RunFolder


@dataclass(frozen=True, slots=True)
class Member:
    """The player of a seat (an agent's place in an episode): the model of `agent` in the runs with
    this label."""

    label: str
    agent: str


@dataclass(frozen=True, slots=True)
class Crossing:
    """A team assembled from several runs, with its title."""

    title: str
    seats: Mapping[str, Member]


def crossings(
    agents: Sequence[str], together: str, alone: Mapping[str, str]
) -> tuple[Crossing, ...]:
    """Returns the teams of Table 4 of Stronger-MAS: the team as trained; the team with swapped
    policies, in which each agent's policy acts for another agent; and a team of agents that were
    all trained alone.

    together: the label of the runs whose agents were trained as a team.
    alone: for each agent, the label of the runs in which only this agent was trained.
    Errors: ConfigError if only some agents have a label.
    """
    following = [*agents[1:], agents[0]]
    teams = [
        Crossing("trained together", {a: Member(together, a) for a in agents}),
        Crossing(
            "trained together, policies swapped",
            {a: Member(together, b) for a, b in zip(agents, following, strict=True)},
        ),
    ]
    if alone and set(alone) != set(agents):
        raise ConfigError(f"--alone: name a label for each of {', '.join(agents)}, or for none")
    if alone:
        members = {agent: Member(alone[agent], agent) for agent in agents}
        teams.append(Crossing("each trained alone, put together", members))
    return tuple(teams)


def play_crossing(
    crossing: Crossing, runs: Mapping[str, RunFolder], *, base: str
) -> dict[str, float]:
    """Evaluate a team on the task of the run `base`, with that run's settings.

    runs: the runs of one seed, by label.
    Errors: ConfigError if agents share a model; CheckpointError.
    """
    from colearn.training.evaluation.evaluate import evaluate_weights
    from colearn.training.load_team import load_team

    team = load_team(runs[base].config())
    folders = {}
    for seat, member in crossing.seats.items():
        checkpoint = runs[member.label].checkpoints.choose()
        config = bind_agents(runs[member.label].config(), team.run.task.agents)
        trained = NetworkKey("actor", own_model(config, member.agent))
        key = NetworkKey("actor", own_model(team.run.config, seat))
        folders[key] = checkpoint.path / str(trained)
    return evaluate_weights(team, folders)


def own_model(config: Config, agent: str) -> str:
    """Returns the name of the agent's model, which no other agent may use.

    Errors: ConfigError if the agent shares its model.
    """
    model = config.agents[agent].model
    sharing = [other for other, settings in config.agents.items() if settings.model == model]
    if sharing != [agent]:
        raise ConfigError(
            f"agents.{agent}: shares the model '{model}'; a study needs a model for each agent"
        )
    return model
