"""mkdocs hooks: adds the measured results to the site, beside the pages that cite them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def on_files(files: Files, config: Any) -> Files:
    """Adds benchmarks/results to the site as results/."""
    for path in sorted(one for one in RESULTS.rglob("*") if one.suffix in (".md", ".png")):
        place = f"results/{path.relative_to(RESULTS).as_posix()}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that lead out of docs/ lead to the same pages of the site."""
    if page.file.src_uri.startswith("results/"):
        return markdown.replace("](../../docs/", "](../")
    return markdown.replace("](../benchmarks/results/", "](results/")
