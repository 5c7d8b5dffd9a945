"""Server of one small agent: time to first token, concurrent sessions, memory.

    python benchmarks/serve.py [--agent DIR/AGENT] [--rounds 5] [--sessions 64] [--churn 2000]

Without --agent the quickstart's model as it is before training is served. Server and client share
the machine. Every figure is a ratio within one run: turn 8 to turn 2 of the same sessions, requests
one by one to the same requests at once, memory to its limit. Rounds alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from colearn.config import SamplingSettings, load_config
from colearn.config.build import build_task
from colearn.contract import joint_observations
from colearn.deploy.export import AgentManifest
from colearn.models.embedded import embedded_model
from colearn.models.load import load_base, load_tokenizer, resolve_device
from colearn.runs.record.checksums import write_checksums

CACHE_MB = 16
"""Of the run in which sessions come and go: small, so that most of them are evicted."""
TURNS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", type=Path, help="an exported agent")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--turns", type=int, default=2, help="of the sessions at once")
    parser.add_argument("--churn", type=int, default=2000, help="sessions in the memory run")
    parser.add_argument("--threads", type=int, default=1, help="of the server's torch")
    options = parser.parse_args()
    print(f"load before: {_load()}")
    with tempfile.TemporaryDirectory() as place:
        agent = options.agent or _export(Path(place) / "agent")
        texts = _observations()
        with _serving(agent, options.threads) as server:
            asyncio.run(_first_tokens(server, texts, options.rounds))
            asyncio.run(_at_once(server, texts, options.sessions, options.turns, options.rounds))
        limits = ("--cache-mb", str(CACHE_MB), "--max-sessions", str(options.churn))
        with _serving(agent, options.threads, *limits) as server:
            asyncio.run(_memory(server, texts, options.churn))
    print(f"load after: {_load()}")


async def _first_tokens(server: Server, texts: list[str], rounds: int) -> None:
    """Turn 8 against turn 2 of the same session, messages of one length."""
    client = Client(server)
    text = texts[0]
    seconds: dict[int, list[float]] = {turn: [] for turn in range(1, TURNS + 1)}
    cached = {}
    for number in range(8 * rounds + 2):
        for turn in range(1, TURNS + 1):
            first, usage = await client.first_token(text, f"first-{number}", seed=number)
            if number >= 2:  # the first sessions warm up
                seconds[turn].append(first)
            cached[turn] = usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]
    for turn, samples in seconds.items():
        tokens, kept = cached[turn]
        middle = 1000 * statistics.median(samples)
        print(f"turn {turn}: {middle:.2f} ms to the first token; {tokens} tokens, {kept} cached")
    ratios = [a / b for a, b in zip(seconds[8], seconds[2], strict=True)]
    medians = statistics.median(seconds[8]) / statistics.median(seconds[2])
    quarter = float(np.quantile(seconds[8], 0.25) / np.quantile(seconds[2], 0.25))
    print(
        f"turn 8 / turn 2: {medians:.2f} (of medians), {quarter:.2f} (of lower quartiles, "
        f"which other jobs touch less), {statistics.median(ratios):.2f} (median of "
        f"{len(ratios)} sessions)"
    )


async def _at_once(
    server: Server, texts: list[str], sessions: int, turns: int, rounds: int
) -> None:
    client, speedups = Client(server), []
    for number in range(rounds + 1):
        started = time.perf_counter()
        alone = [await _play(client, texts, f"one-{number}", n, turns) for n in range(sessions)]
        middle = time.perf_counter()
        at_once = await asyncio.gather(
            *(_play(client, texts, f"all-{number}", n, turns) for n in range(sessions))
        )
        ended = time.perf_counter()
        same = sum(a == b for a, b in zip(alone, at_once, strict=True))
        tokens = sum(len(turn) for session in at_once for turn in session)
        one, all_ = middle - started, ended - middle
        print(
            f"round {number}: {tokens} tokens; one by one {tokens / one:.0f} tok/s, "
            f"{sessions} at once {tokens / all_:.0f} tok/s: {one / all_:.2f} times; "
            f"{same} of {sessions} sessions equal",
            flush=True,
        )
        if number:  # the first round warms up
            speedups.append(one / all_)
    print(
        f"{sessions} sessions at once / one by one: {statistics.median(speedups):.2f} "
        f"(least {min(speedups):.2f}, most {max(speedups):.2f}, {rounds} rounds)"
    )


async def _play(
    client: Client, texts: list[str], name: str, number: int, turns: int
) -> list[list[int]]:
    token_ids = []
    for turn in range(turns):
        text = texts[(number + turn) % len(texts)]
        answer = await client.chat(text, f"{name}-{number}", seed=1000 * number + turn)
        token_ids.append(answer["choices"][0]["token_ids"])
    return token_ids


async def _memory(server: Server, texts: list[str], churn: int) -> None:
    """Sessions of two turns, 32 at a time, none ever deleted."""
    client, gate = Client(server), asyncio.Semaphore(32)
    for number in range(64):
        await _play(client, texts, "warm", number, 1)
    start = server.rss()
    most_cached = 0.0
    print(f"resident memory at first: {start:.1f} MB; limit of the KV caches {CACHE_MB} MB")

    async def one(number: int) -> None:
        async with gate:
            await _play(client, texts, "many", number, 2)

    step = max(1, churn // 10)
    for first in range(0, churn - 64, step):
        await asyncio.gather(*(one(n) for n in range(first, min(first + step, churn - 64))))
        metrics = await client.metrics()
        cached = metrics["colearn_cache_bytes"] / 2**20
        most_cached = max(most_cached, cached)
        evicted = metrics["colearn_sessions_evicted_total"]
        print(
            f"{first + step + 64} sessions: resident {server.rss():.1f} MB "
            f"({server.rss() - start:+.1f}), KV caches {cached:.1f} MB, evicted {evicted:.0f}",
            flush=True,
        )
    print(f"most KV caches seen: {most_cached:.2f} of {CACHE_MB} MB")


@dataclass(frozen=True)
class Server:
    port: int
    process: psutil.Process

    def rss(self) -> float:
        """Megabytes."""
        return self.process.memory_info().rss / 2**20


class Client:
    """Small, since it shares the processors with the server: one connection for each request at
    work, kept alive."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def chat(self, text: str, session: str, **asked: Any) -> dict[str, Any]:
        return json.loads(
            await self._ask("POST", "/v1/chat/completions", _body(text, session, asked))
        )

    async def metrics(self) -> dict[str, float]:
        lines = (await self._ask("GET", "/metrics", b"")).decode().splitlines()
        return {
            line.split()[0]: float(line.split()[1]) for line in lines if not line.startswith("#")
        }

    async def first_token(
        self, text: str, session: str, **asked: Any
    ) -> tuple[float, dict[str, Any]]:
        """Seconds until the first chunk with text, and the usage."""
        asked |= {"stream": True, "stream_options": {"include_usage": True}}
        body = _body(text, session, asked)
        reader, writer = await self._connection()
        started = time.perf_counter()
        writer.write(self._head("POST", "/v1/chat/completions", body))
        first, usage = None, {}
        while (line := await reader.readline()) and b"[DONE]" not in line:
            if line.startswith(b"data: "):
                chunk = json.loads(line[6:])
                usage = chunk.get("usage") or usage
                if first is None and any(c["delta"].get("content") for c in chunk["choices"]):
                    first = time.perf_counter() - started
        while (await reader.readline()).strip() != b"0":
            pass
        await reader.readline()
        self._idle.append((reader, writer))
        assert first is not None
        return first, usage

    async def _ask(self, method: str, path: str, body: bytes) -> bytes:
        reader, writer = await self._connection()
        writer.write(self._head(method, path, body))
        status = await reader.readline()
        length = 0
        while (line := await reader.readline()).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = await reader.readexactly(length)
        self._idle.append((reader, writer))
        if b" 200 " not in status:
            raise RuntimeError(f"{status!r} {body!r}")
        return body

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._idle:
            return self._idle.pop()
        return await asyncio.open_connection("127.0.0.1", self.server.port)

    def _head(self, method: str, path: str, body: bytes) -> bytes:
        kind = "Content-Type: application/json\r\n"
        start = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}"
        return f"{start}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _body(text: str, session: str, asked: dict[str, Any]) -> bytes:
    messages = [{"role": "user", "content": text}]
    fields = {"messages": messages, "session_id": session, "return_token_ids": True, **asked}
    return json.dumps(fields).encode()


@contextmanager
def _serving(agent: Path, threads: int, *options: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "colearn", "serve", str(agent), "--port", "0", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.rsplit(":", 1)[1].removesuffix("/v1\n"))
        yield Server(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait()


def _export(folder: Path) -> Path:
    config = load_config("quickstart", [])
    source = embedded_model(build_task(config), "embedded", "benchmark")
    base = load_base(
        str(source),
        compute="float32",
        trained=False,
        device=resolve_device("cpu"),
        field="benchmark",
    )
    base.causal.save_pretrained(folder)
    load_tokenizer(str(source), field="benchmark").save_pretrained(folder)
    AgentManifest(
        agent="agent_1",
        task=config.task.name,
        algorithm="untrained",
        sampling=SamplingSettings(max_tokens=16),
        weights="merged",
    ).write(folder)
    write_checksums(folder)
    return folder


def _observations() -> list[str]:
    task = build_task(load_config("quickstart", []))
    rng = np.random.default_rng(0)
    states = [task.reset(item, rng) for item in task.items("train")]
    return [next(iter(joint_observations(task, state).values())).text for state in states]


def _load() -> str:
    return ", ".join(f"{value:.1f}" for value in os.getloadavg()) + f" on {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
