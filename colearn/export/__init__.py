"""Trained agents as folders: one for each, readable without this library."""

from .checksums import verify
from .manifest import AgentManifest, read_manifest
from .run import export_run

__all__ = ["AgentManifest", "export_run", "read_manifest", "verify"]
