"""No package index has this distribution: install lines name a clone, and extras that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from colearn.deploy.export import AgentManifest
from colearn.deploy.export.usage import usage

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PATTERNS = (
    *("*.md", "docs/**/*.md", "benchmarks/**/*.md"),
    *("benchmarks/*.py", "colearn/**/*.template"),
)
CARD = AgentManifest(agent="ada", task="notes", algorithm="magrpo", weights="merged")
TEXTS = {
    **{
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for pattern in PATTERNS
        for path in ROOT.glob(pattern)
    },
    "the model card": usage(CARD, rank=None, exact=True),
}

_INSTALL = re.compile(r"pip install [^`\n|&]*")
_EXTRAS = re.compile(r"(?:-e [\"']?[\w./]*)\[([\w,]+)\]")


def lines(text: str) -> list[str]:
    # a command may be wrapped inside of a paragraph
    return _INSTALL.findall(re.sub(r"pip install\n", "pip install ", text))


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_installed_that_no_index_has(name: str) -> None:
    assert [line for line in lines(TEXTS[name]) if PROJECT["name"] in line] == []


def test_every_extra_that_a_line_names_exists() -> None:
    known = PROJECT["optional-dependencies"]
    named = [
        extra
        for text in TEXTS.values()
        for line in lines(text)
        for extras in _EXTRAS.findall(line)
        for extra in extras.split(",")
    ]
    assert set(named) <= set(known)
    assert {"serve", "dev", "tasks", "games", "vllm", "deepspeed"} <= set(named)


def test_the_blocks_that_serve_install_the_extra_first() -> None:
    for name in ("README.md", "docs/howto/serving.md", "the model card"):
        text = TEXTS[name]
        assert 0 < text.find('pip install -e ".[serve]"') < text.find("colearn serve "), name
    assert "[serve]" in TEXTS["docs/howto/deployment.md"]
