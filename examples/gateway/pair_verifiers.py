"""An environment of verifiers with two roles: a scout reads where an animal is, and a seeker reads
only what the scout says."""

from __future__ import annotations

import verifiers.v1 as vf

__all__ = ["PairEnv", "Places"]

ANIMALS = ("owl", "bee", "fox", "hen", "cat", "dog", "cow", "pig", "ant", "ape")
PLACES = ("barn", "lake", "hill")


class PlaceData(vf.TaskData):
    """Where the animal is."""

    place: str


class PlaceTask(vf.Task[PlaceData]):
    """Pays a role for the right place. Each role has a trace, and so a reward, of its own."""

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        """The rubric."""
        return float(trace.last_reply.strip() == self.data.place)


class Places(vf.Taskset[PlaceTask]):
    """A task for each animal and place."""

    def load(self) -> list[PlaceTask]:
        """Builds the tasks."""
        return [
            PlaceTask(PlaceData(prompt=f"The {animal} is at the {place}. Where?", place=place))
            for animal in ANIMALS
            for place in PLACES
        ]


class PairConfig(vf.EnvConfig):
    """Two roles."""

    scout: vf.AgentConfig = vf.AgentConfig()
    seeker: vf.AgentConfig = vf.AgentConfig()


class PairEnv(vf.Env[PairConfig]):
    """The scout answers, then the seeker is told the answer."""

    async def run(self, task: PlaceTask, agents: vf.Agents) -> None:
        """Plays an episode of two turns, one of each role."""
        told = await agents.scout.run(task)
        prompt = f"The scout says {told.last_reply}. Where do you go?"
        await agents.seeker.run(PlaceTask(PlaceData(prompt=prompt, place=task.data.place)))
