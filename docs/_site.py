"""mkdocs hooks: adds measured results and generated reference text, and checks the reference."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from _reference import filled, public_names
from _versions import is_versioned, write_versions

QUESTIONS = Path(__file__).with_name("_questions.md")
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
_RANK = {
    **{"start": 3, "howto": 2, "concepts": 2, "tutorials": 2, "evidence": 0.7, "papers": 0.7},
    **{"results": 0.005, "decisions.md": 0.3},
    **{"reference/contracts.md": 0.2, "reference/python.md": 0.2, "reference/toolkit.md": 0.2},
}
"""Weight of a page, or of a folder's pages, in search. A page's front matter takes precedence."""


def on_config(config: Any) -> Any:
    """Adds the menu of versions to a site that has others beside it."""
    if is_versioned(Path(config.site_dir)):
        config.extra["version"] = {"provider": "mike"}  # the form of the list, not the program
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds benchmarks/results to the site as results/."""
    for path in sorted(one for one in RESULTS.rglob("*") if one.suffix in (".md", ".png")):
        place = f"results/{path.relative_to(RESULTS).as_posix()}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrites links that lead out of docs/ to the same pages of the site, and ranks answers before
    results in the site's search."""
    path = page.file.src_uri
    boost = _RANK.get(path, _RANK.get(path.partition("/")[0], 1))
    page.meta.setdefault("search", {"boost": boost})
    if page.file.src_uri.startswith("results/"):
        return markdown.replace("](../../docs/", "](../")
    markdown = filled(markdown)
    return re.sub(r"\]\((\.\./)((?:\.\./)*)benchmarks/results/", r"](\2results/", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Inlines the drawings of docs/images, so that they follow the light or dark palette."""

    def drawing(image: re.Match[str]) -> str:
        svg = (Path(__file__).parent / "images" / f"{image[1]}.svg").read_text()
        return f'<span class="drawing" style="display: block">{svg}</span>'

    return re.sub(r'<img [^>]*src="[./]*images/(\w+)\.svg"[^>]*>', drawing, html)


def on_post_build(config: Any) -> None:
    """Raises PluginError for a public name without an entry or a question without its page."""
    site = Path(config.site_dir)
    anchors = set[str]()
    for page in (site / "reference").rglob("*.html"):
        anchors |= _anchors(page)
    missing = sorted(set(public_names()) - anchors)
    if missing:
        raise PluginError(f"no reference entry for {', '.join(missing)}")
    for answer in re.findall(r"\| ([\w/]+\.md(?:#[\w-]+)?) \|$", QUESTIONS.read_text(), re.M):
        path, _, anchor = answer.partition("#")
        page = site / path.removesuffix(".md") / "index.html"
        if not page.is_file() or (anchor and anchor not in _anchors(page)):
            raise PluginError(f"_questions.md: no {answer}")
    if is_versioned(site):
        write_versions(site.parent)


def _anchors(page: Path) -> set[str]:
    return set(re.findall(r' id="([\w.-]+)"', page.read_text()))
