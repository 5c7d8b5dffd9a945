"""Exports each trained agent to a folder that can be loaded without colearn, and pushes such
folders to a hub."""

from colearn.runs.record.checksums import verify

from .agent_folders import export_run
from .critics import export_critics, write_fit
from .hub import PushedTeam, push_agents, push_critics
from .manifest import AgentManifest, read_manifest

__all__ = [
    "AgentManifest",
    "PushedTeam",
    "export_critics",
    "export_run",
    "push_agents",
    "push_critics",
    "read_manifest",
    "verify",
    "write_fit",
]
