"""The gate builds the site such that each warning of mkdocs fails it."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_gate_builds_the_site_with_its_warnings_counted() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    builds = [line.split() for line in lines if " mkdocs build" in line]
    assert len(builds) == 1
    assert "--strict" in builds[0]
    assert not {"--quiet", "-q"} & set(builds[0])  # mkdocs counts what it logs


def test_dead_links_and_anchors_are_warnings() -> None:
    links = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["validation"]["links"]
    assert links == {"anchors": "warn", "not_found": "warn", "unrecognized_links": "warn"}
