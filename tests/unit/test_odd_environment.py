"""The environment of a process: proxies, certificates and the cache folder.

The table of all tried cases is `benchmarks/results/reports.md`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from colearn.deploy.client.endpoint import Endpoint
from colearn.engines.server_link import ServerLink
from colearn.errors import ColearnError, ConfigError
from colearn.programs.files.cache import cache_place
from colearn.programs.gateway.programs import run_command
from colearn.tasks.rewards.verdict_cache import JudgeScore, Verdicts

UNUSABLE = [
    ("ALL_PROXY", "socks5h://127.0.0.1:1080"),  # its package is not installed
    ("HTTP_PROXY", "ftp://proxy:1"),
    ("NO_PROXY", "[::1"),
    ("SSL_CERT_FILE", "/no/such/file"),
]
DEAD = [("HTTP_PROXY", "http://127.0.0.1:1")]


async def opens(url: str) -> None:
    endpoint = Endpoint(url, name="judge", api_key=None, timeout=1.0, retries=0)
    await endpoint.open()
    await endpoint.close()


@pytest.mark.parametrize(("name", "value"), UNUSABLE)
def test_a_proxy_or_certificate_that_cannot_be_used_is_one_line(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "NO_PROXY":
        monkeypatch.setenv(*DEAD[0])
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="proxy or certificates cannot"):
        asyncio.run(opens("http://judge.example/v1"))
    with pytest.raises(ConfigError, match="proxy or certificates cannot be used"):
        ServerLink("http://server.example", timeout=1.0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
@pytest.mark.parametrize(("name", "value"), UNUSABLE + DEAD)
def test_a_server_on_this_machine_is_reached_without_a_proxy(
    host: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    asyncio.run(opens(f"http://{host}:8000/v1"))
    link = ServerLink(f"http://{host}:8000", timeout=1.0)
    assert not link._client._mounts  # no proxy for any URL
    link.close()


def test_a_cache_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "file"))
    assert Verdicts().read(["a"], 0.0, 10.0) is None
    with pytest.raises(ColearnError, match=r"COLEARN_CACHE: cannot make the folder .*file"):
        Verdicts().write(["a"], JudgeScore(score=1.0))
    with pytest.raises(ColearnError, match=r"COLEARN_CACHE: cannot make the folder .*file"):
        cache_place("model")


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, "127.0.0.1"), ({"NO_PROXY": "a.org"}, "a.org,127.0.0.1"), ({"no_proxy": "*"}, "*")],
)
def test_a_program_reaches_the_gateway_without_a_proxy(
    before: dict[str, str], after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*DEAD[0])
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    process = run_command(("sh", "-c", 'echo "$no_proxy" >&2'), {})
    assert process.stderr is not None
    assert process.stderr.read().decode().strip() == after
    process.wait()
