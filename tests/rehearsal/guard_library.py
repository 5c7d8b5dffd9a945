"""Compiles the device guard once per version of torch, and loads it before torch."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("device_guard.cpp")


class NoGuard(Exception):
    """The guard cannot be built here; says why."""


def torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def compiled(cache: Path) -> Path:
    """The guard as a shared library in `cache`. Errors: NoGuard."""
    version = importlib.metadata.version("torch")
    digest = hashlib.sha256(SOURCE.read_bytes() + version.encode()).hexdigest()[:16]
    library = cache / f"device_guard-{digest}.so"
    if library.exists():
        return library
    if sys.platform != "linux":
        raise NoGuard("the device guard is built on Linux only")
    compiler = shutil.which("g++")
    if compiler is None:
        raise NoGuard("no g++ to compile the device guard")
    if (torch_folder() / "lib/libtorch_cuda.so").exists():
        raise NoGuard("this torch is built with CUDA: run `pytest -m gpu` instead")
    cache.mkdir(parents=True, exist_ok=True)
    include, lib = torch_folder() / "include", torch_folder() / "lib"
    partial = library.with_suffix(f".{os.getpid()}")
    command = [compiler, "-O1", "-shared", "-fPIC", "-std=c++20", str(SOURCE), "-o", str(partial)]
    command += [f"-I{include}", f"-I{include}/torch/csrc/api/include", f"-L{lib}"]
    command += ["-lc10", "-ltorch_cpu"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NoGuard(f"g++ failed: {done.stderr.strip().splitlines()[0]}")
    partial.replace(library)
    return library


loaded: list[ctypes.CDLL] = []
"""The guard, once it is loaded."""


def load(library: Path) -> None:
    """Load the guard. Before torch is imported: torch reads the hooks once."""
    assert "torch" not in sys.modules
    lib = torch_folder() / "lib"
    for name in ("libtorch_global_deps.so", "libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(lib / name), mode=ctypes.RTLD_GLOBAL)
    loaded.append(ctypes.CDLL(str(library)))
