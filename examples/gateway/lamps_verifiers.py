"""An environment of verifiers: two lamps of a room, asked for one after the other."""

from __future__ import annotations

import lamps
import verifiers.v1 as vf

__all__ = ["Lamps", "LampsEnv"]


class LampsData(vf.TaskData):
    """A room, and the colours of its lamps."""

    first: str
    second: str


class LampsTask(vf.Task[LampsData]):
    """Pays half of the reward for each answer that names its lamp's colour."""

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        """The rubric."""
        said = [(message.content or "").strip() for message in trace.assistant_messages]
        lamps_of_room = (self.data.first, self.data.second)
        return sum(a == b for a, b in zip(said, lamps_of_room, strict=False)) / 2


class Lamps(vf.Taskset[LampsTask]):
    """A task for each room with two lamps."""

    def load(self) -> list[LampsTask]:
        """Builds the tasks."""
        return [
            LampsTask(
                LampsData(prompt=f"Room {room}. The lamp is {first}.", first=first, second=second)
            )
            for room, first, second in lamps.ROWS
        ]


class LampsConfig(vf.EnvConfig):
    """One role."""

    agent: vf.AgentConfig = vf.AgentConfig()


class LampsEnv(vf.Env[LampsConfig]):
    """The second lamp is shown after the answer to the first."""

    async def run(self, task: LampsTask, agents: vf.Agents) -> None:
        """Plays an episode of two turns."""
        async with agents.agent.interaction(task) as interaction:
            await interaction.turn()
            await interaction.turn(f"The next lamp is {task.data.second}.")
