"""A comparison's report in a browser of a phone's width."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import fabricated_runs as fabricated
import pytest
from browser import browser, needs_chromium
from quiet_server import QuietServer

from colearn.runs.report import write_report


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        return None


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    fabricated.write_comparison(tmp_path, range(2))
    for run in (tmp_path / "runs").iterdir():
        (run / "log.txt").write_text("a log, as of a run that a comparison started\n")
    write_report(tmp_path)
    server = QuietServer(functools.partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"{server.url}/report.html"
    server.shutdown()
    thread.join()
    server.server_close()


@needs_chromium
def test_the_page_is_no_wider_than_the_screen(url: str) -> None:
    with browser() as page:
        page.command(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=844,
            deviceScaleFactor=1,
            mobile=False,
        )
        page.open(url)
        page.wait("document.querySelector('td a') !== null")
        assert page.value("document.documentElement.scrollWidth") <= 390
        assert page.complaints == []
