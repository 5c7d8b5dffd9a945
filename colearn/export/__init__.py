"""Exports trained agents, one folder each, loadable without this library; pushes to a hub."""

from .checksums import verify
from .hub import PushedTeam, push_agents
from .manifest import AgentManifest, read_manifest
from .run import export_run

__all__ = ["AgentManifest", "PushedTeam", "export_run", "push_agents", "read_manifest", "verify"]
