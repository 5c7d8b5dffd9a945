"""`colearn serve`: runs an OpenAI-compatible server for one exported agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from colearn.errors import MissingExtra

TOKEN = "COLEARN_TOKEN"


def serve(
    agent: Annotated[Path, typer.Argument(help="An exported agent: DIR/AGENT.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help=f"Holds the bearer token; else ${TOKEN}, else none.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without a token.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda:1, ...")] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; else one for a small model, or all.")
    ] = None,
    max_batch: Annotated[int, typer.Option(min=1, help="Rows decoded together.")] = 64,
    max_queue: Annotated[int, typer.Option(min=1, help="Requests that wait for a row.")] = 256,
    cache_mb: Annotated[int, typer.Option(min=1, help="Memory for KV caches.")] = 1024,
    max_context: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a history; else the model's own.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer.")] = 4096,
    max_sessions: Annotated[int, typer.Option(min=1, help="Sessions kept.")] = 4096,
    session_idle: Annotated[
        float, typer.Option(min=0, help="Seconds until a new session may replace one.")
    ] = 600.0,
    max_body_kb: Annotated[int, typer.Option(min=1, help="Size of a request.")] = 1024,
    read_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for slow clients.")] = 10.0,
    grace: Annotated[float, typer.Option(min=0, help="Seconds to finish at the end.")] = 30.0,
) -> None:
    """Serve one exported agent to OpenAI's and Anthropic's clients. Ends on SIGTERM."""
    from colearn.deploy.serve.access import read_token

    token = read_token(token_file, os.environ.get(TOKEN), host=host, insecure=insecure)
    try:
        from colearn.deploy.client.protocol.limits import ServerLimits
        from colearn.deploy.serve.server import serve as run
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn", "h11", "prometheus_client"):
            raise
        raise MissingExtra(error.name, "serve") from None
    limits = ServerLimits(
        max_batch=max_batch,
        max_queue=max_queue,
        cache_bytes=cache_mb * 2**20,
        max_sessions=max_sessions,
        session_idle=session_idle,
        max_tokens=max_tokens,
        max_body=max_body_kb * 1024,
        read_timeout=read_timeout,
        grace=grace,
    )
    run(
        agent,
        host=host,
        port=port,
        token=token,
        limits=limits,
        device=device,
        context=max_context,
        threads=threads,
    )
