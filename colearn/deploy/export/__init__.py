"""Exports each trained agent to a folder that can be loaded without colearn."""

from colearn.runs.record.checksums import verify

from .agent_folders import export_run
from .critics import export_critics, write_fit
from .manifest import AgentManifest, read_manifest

__all__ = [
    "AgentManifest",
    "export_critics",
    "export_run",
    "read_manifest",
    "verify",
    "write_fit",
]
