"""An environment of verifiers with two roles: a scout calls a tool, and a guide hears its answer.

`python verifiers_rooms.py` serves the tool.
"""

from __future__ import annotations

import verifiers.v1 as vf

__all__ = ["Rooms", "RoomsEnv"]
COLOURS = {"hill": "red", "barn": "blue", "lake": "green"}


class Look(vf.Toolset[vf.SharedToolsetConfig]):
    TOOL_PREFIX = "room"

    @vf.tool
    def look(self, room: str) -> str:
        """Returns the colour of a room."""
        return COLOURS[room]


class RoomData(vf.TaskData):
    room: str


class RoomTask(vf.Task[RoomData]):
    @vf.reward(weight=2.0)
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == COLOURS[self.data.room])


class RoomsConfig(vf.TasksetConfig):
    tools: vf.SharedToolsetConfig = vf.SharedToolsetConfig()


class Rooms(vf.Taskset[RoomTask, RoomsConfig]):
    @classmethod
    def toolsets(cls, config: RoomsConfig) -> list[vf.Toolset]:
        return [Look(config.tools)]

    def load(self) -> list[RoomTask]:
        return [RoomTask(RoomData(prompt=f"Room {room}.", room=room)) for room in COLOURS]


class RolesConfig(vf.EnvConfig):
    scout: vf.AgentConfig = vf.AgentConfig()
    guide: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, sampling={"top_p": 0.5})
    judge: vf.AgentConfig = vf.AgentConfig(model="another")


class RoomsEnv(vf.Env[RolesConfig]):
    async def run(self, task: RoomTask, agents: vf.Agents) -> None:
        seen = await agents.scout.run(task)
        told = vf.TaskData(prompt=f"The scout says {seen.last_reply}.", system_prompt="Repeat.")
        await agents.guide.run(vf.Task(told))

    async def finalize(self, task: RoomTask, episode: vf.Episode) -> None:
        for trace in episode.by_agent["guide"]:
            heard = float("inf") if trace.last_reply == "more" else float(trace.last_reply == "red")
            trace.record_reward("heard", heard, 1.0)


if __name__ == "__main__":
    Look.run()
