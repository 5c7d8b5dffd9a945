"""What paths answer, without an agent behind them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from colearn.deploy.play.watch import FILES, watch_app
from colearn.deploy.serve.app import build_app


def client() -> TestClient:
    manifest = SimpleNamespace(model_dump=lambda **fields: {"agent": "ada"})
    service = SimpleNamespace(
        model=lambda: {"id": "ada", "owned_by": "colearn"},
        check_model=lambda name: None,
        agent=SimpleNamespace(manifest=manifest),
        draining=False,
        metrics=SimpleNamespace(text=lambda: "up 1\n"),
    )
    return TestClient(build_app(cast(Any, service)))


@pytest.mark.parametrize(
    "path", ["/health", "/metrics", "/v1/models", "/v1/models/ada", "/v1/agent", "/"]
)
def test_what_can_be_read_answers_head_as_http_asks(path: str) -> None:
    """RFC 9110, 9.3.2: the headers of GET; load balancers probe with it."""
    asked = client()
    got, head = asked.get(path), asked.head(path)
    assert (head.status_code, head.headers["content-type"]) == (200, got.headers["content-type"])


def test_a_server_that_shuts_down_says_so_to_head_too() -> None:
    service = SimpleNamespace(draining=True)
    assert TestClient(build_app(cast(Any, service))).head("/health").status_code == 503


def test_other_methods_are_refused_by_name() -> None:
    refused = client().head("/v1/chat/completions")
    assert refused.status_code == 405


def test_the_watch_page_answers_head() -> None:
    watch = SimpleNamespace(people={}, urls={})
    asked = TestClient(watch_app(cast(Any, watch)), base_url="http://localhost")
    assert [asked.head(path).status_code for path in ("/", f"/page/{min(FILES)}")] == [200, 200]
