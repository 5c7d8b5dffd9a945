"""`--engine vllm`: serves the agent with vLLM's OpenAI-compatible server."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

from colearn.deploy.export import AgentManifest, read_manifest, verify
from colearn.errors import ConfigError, MissingExtra
from colearn.models.adapter_folder import base_revision


def replace_process(
    folder: Path, *, host: str, port: int, token: str | None, context: int | None
) -> NoReturn:
    """Replaces this process with vLLM's server, which has no sessions.

    The chat template applies the role prompt.
    Errors: MissingExtra; ConfigError for an agent with a window, because vLLM does not support
    windows.
    """
    manifest = read_manifest(folder)
    verify(folder)
    command = vllm_command(manifest, folder, host=host, port=port, context=context)
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtra("vllm", "vllm")
    environment = dict(os.environ)
    if token is not None:
        environment["VLLM_API_KEY"] = token  # other users see a command line
    os.execve(sys.executable, [sys.executable, "-P", *command], environment)


def vllm_command(
    manifest: AgentManifest, folder: Path, *, host: str, port: int, context: int | None
) -> list[str]:
    """Returns the Python arguments that start vLLM's server."""
    if manifest.window is not None:
        raise ConfigError(
            f"{folder}: window {manifest.window}: vLLM cannot keep the positions of what a window "
            "has evicted; use --engine transformers"
        )
    model, adapter = str(folder), []
    if manifest.weights == "adapter":
        if manifest.base is None:
            raise ConfigError(f"{folder}: base: not named; export the agent again")
        model = manifest.base
        adapter = ["--enable-lora", "--lora-modules", f"{manifest.agent}={folder}"]
        adapter += ["--tokenizer", str(folder)]
        revision = base_revision(str(folder), str(folder))
        adapter += [] if revision is None else ["--revision", revision]
    name = manifest.agent if manifest.weights == "merged" else f"{manifest.agent}-base"
    command = ["-m", "vllm.entrypoints.openai.api_server", "--model", model, *adapter]
    command += ["--served-model-name", name, "--dtype", manifest.dtype]
    command += ["--host", host, "--port", str(port)]
    return command + ([] if context is None else ["--max-model-len", str(context)])
