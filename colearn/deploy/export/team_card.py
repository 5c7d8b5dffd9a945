"""Writes the README.md of a pushed team. The README lists the agents' repositories and the vLLM
commands that serve the agents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from .manifest import AgentManifest
from .usage import rank_limit

PORT = 8000


def team_card(
    name: str,
    folders: Mapping[str, Path],
    agents: Mapping[str, AgentManifest],
    at: Mapping[str, str],
) -> str:
    """Return the Markdown page for the repository of the team `name`. `at` maps each agent to the
    agent's repository."""
    first = next(iter(agents.values()))
    header = {
        "tags": ["colearn", "multi-agent", "reinforcement-learning", first.algorithm],
        "pipeline_tag": "text-generation",
    }
    rows = [
        f"| `{agent}` | [{at[agent]}](https://huggingface.co/{at[agent]}) | {_weights(manifest)} |"
        for agent, manifest in agents.items()
    ]
    commands = "\n\n".join(_commands(folders, agents, at))
    return f"""\
---
{yaml.safe_dump(header, sort_keys=False)}---
# {name}: a team trained with {first.algorithm} on {first.task}

{len(agents)} agents, one repository each. Every agent runs without the others; its own card has
the settings and scores of the training run.

| agent | repository | weights |
|---|---|---|
{chr(10).join(rows)}

## Serve with vLLM

```bash
{commands}
```

{_REQUESTS if any(m.weights == "adapter" for m in agents.values()) else _OWN}"""


def _weights(manifest: AgentManifest) -> str:
    return f"LoRA adapter on `{manifest.base}`" if manifest.base else "all weights"


def _commands(
    folders: Mapping[str, Path], agents: Mapping[str, AgentManifest], at: Mapping[str, str]
) -> Iterator[str]:
    """Returns a command for all adapters of a base, and one for each agent with merged weights."""
    port = PORT
    bases: dict[tuple[str, str], list[str]] = {}
    for agent, manifest in agents.items():
        if manifest.base is not None:
            bases.setdefault((manifest.base, manifest.dtype), []).append(agent)
    for (base, dtype), named in bases.items():
        rank = max(_rank(folders[agent]) for agent in named)
        adapters = " ".join(f"{agent}={at[agent]}" for agent in named)
        yield " \\\n    ".join(
            [
                f"vllm serve {base} --port {port} --dtype {dtype}",
                f"--enable-lora --max-loras {len(named)} --max-lora-rank {rank_limit(rank)}",
                f"--lora-modules {adapters}",
                f"--tokenizer {at[named[0]]} --generation-config vllm",
            ]
        )
        port += 1
    for agent, manifest in agents.items():
        if manifest.base is None:
            options = f"--port {port} --dtype {manifest.dtype} --served-model-name {agent}"
            yield f"vllm serve {at[agent]} {options}"
            port += 1


def _rank(folder: Path) -> int:
    return int(json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))["r"])


_REQUESTS = """\
One server has one chat template and one set of sampling defaults. Send each agent's role prompt
(`system` in its `agent.json`) as the system message, its `sampling` in every request, and its name
as `model`.
"""

_OWN = """\
Send an agent's name as `model`. Role prompt and sampling settings are in its repository.
"""
