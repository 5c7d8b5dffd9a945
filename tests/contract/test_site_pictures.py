"""Pictures of README.md and docs/ exist, are used, and can be read on light and dark pages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
DRAWINGS = sorted((DOCS / "images").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def _targets(pattern: str) -> set[Path]:
    """The files on this machine to which links of this form lead, from the page of each."""
    return {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(pattern, page.read_text(encoding="utf-8"))
        if not target.startswith(("http:", "https:"))
    }


PICTURES = _targets(r"!\[[^\]]*\]\(([^)#\s]+)")
EPISODES = _targets(r"(?<!!)\[[^\]]*\]\(([^)#\s]+\.html)")


def test_every_picture_of_a_page_exists_and_no_other_is_kept() -> None:
    assert {path for path in PICTURES if not path.is_file()} == set()
    assert {path.resolve() for path in (DOCS / "images").iterdir()} <= PICTURES


def test_every_page_of_the_gallery_exists_and_is_linked() -> None:
    assert {path for path in EPISODES if not path.is_file()} == set()
    assert {path.resolve() for path in (DOCS / "gallery").iterdir()} <= EPISODES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_picture_has_words_for_those_who_do_not_see_it(page: Path) -> None:
    assert re.findall(r"!\[\s*\]\(", page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.stem)
def test_a_drawing_scales_and_has_a_title(drawing: Path) -> None:
    root = ET.parse(drawing).getroot()
    assert root.tag == f"{SVG}svg"
    assert re.fullmatch(r"0 0 [1-9]\d* [1-9]\d*", root.get("viewBox", ""))
    assert (root.findtext(f"{SVG}title") or "").strip()


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.stem)
def test_the_text_of_a_drawing_has_the_colour_of_the_page(drawing: Path) -> None:
    root = ET.parse(drawing).getroot()
    assert root.get("fill") == "currentColor"
    texts = [one for one in root.iter() if one.tag in (f"{SVG}text", f"{SVG}tspan")]
    assert texts
    assert [one.text for one in texts if one.get("fill", "currentColor") != "currentColor"] == []
