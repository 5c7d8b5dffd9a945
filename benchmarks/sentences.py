"""Draws sentences of the documentation by a seed, for a reader who judges each of them.

    python benchmarks/sentences.py --seed 1 --count 60

Drawn from README.md, docs/start, docs/tutorials, docs/howto, docs/concepts and the docstrings of
public modules, classes, functions and attributes. Tables, code and headings are left out.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("start", "tutorials", "howto", "concepts")
PACKAGES = ("colearn", "algorithms", "tasks")
_WORDS = 5
"""Sentences of fewer words are labels, such as `Errors: ConfigError.`"""


def pages() -> Iterator[tuple[str, str]]:
    """Place and text of each paragraph and list item."""
    files = [ROOT / "README.md"]
    for folder in PAGES:
        files += sorted((ROOT / "docs" / folder).glob("*.md"))
    for file in files:
        text = re.sub(r"```.*?```|<!--.*?-->", "", file.read_text(), flags=re.S)
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:- |\d+\. ))", text):
            if not re.match(r"\s*(#|\||!\[|    )", paragraph):
                yield str(file.relative_to(ROOT)), " ".join(paragraph.split())


def docstrings() -> Iterator[tuple[str, str]]:
    """Place and text of each paragraph of a public docstring."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if any(part.startswith("_") and part != "__init__.py" for part in file.parts):
                continue
            for text in _public(ast.parse(file.read_text())):
                for paragraph in re.split(r"\n\s*\n|\n(?=\s*\w+: )", text):
                    if not paragraph.startswith("    "):
                        yield str(file.relative_to(ROOT)), " ".join(paragraph.split())


def _public(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    if (own := ast.get_docstring(tree)) is not None:
        yield own
    for before, node in zip([None, *tree.body], tree.body, strict=False):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") and (own := ast.get_docstring(node)) is not None:
                yield own
        elif _is_text(node) and isinstance(before, ast.AnnAssign | ast.Assign):
            names = [before.target] if isinstance(before, ast.AnnAssign) else before.targets
            if not any(isinstance(n, ast.Name) and n.id.startswith("_") for n in names):
                yield ast.literal_eval(node.value)  # type: ignore[attr-defined]


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def sentences(paragraph: str) -> list[str]:
    parts = re.split(r"(?<=[.!?;])\s+(?=[A-Z`\"])", paragraph.removeprefix("- "))
    return [part for part in parts if len(part.split()) >= _WORDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    written = [(w, s) for w, text in pages() for s in sentences(text)]
    documented = [(w, s) for w, text in docstrings() for s in sentences(text)]
    rng = random.Random(options.seed)
    half = options.count // 2
    drawn = rng.sample(written, half) + rng.sample(documented, options.count - half)
    print(f"{len(written)} sentences of pages, {len(documented)} of docstrings")
    for number, (where, sentence) in enumerate(drawn, start=1):
        print(f"{number}. [{where}] {sentence}")


if __name__ == "__main__":
    main()
