"""The notebooks in examples/notebooks: their form, and that each runs whole.

A cell with the tag `exact` has an output that does not depend on the machine; it is kept in the
notebook, and running it gives the same text. All other outputs are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
FRAMEWORKS = {"5_langgraph.ipynb": "langgraph"}
"""The package that a notebook needs beside the project's own."""


def _cells(name: str) -> list[dict[str, Any]]:
    return [c for c in json.loads((FOLDER / name).read_text())["cells"] if c["cell_type"] == "code"]


def _exact(cell: dict[str, Any]) -> bool:
    return "exact" in cell["metadata"].get("tags", ())


def _text(cell: dict[str, Any]) -> str:
    """The text of a cell's output."""
    parts = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return "".join("".join(part) for part in parts)


def test_there_are_six_notebooks() -> None:
    assert len(NOTEBOOKS) == 6


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_keeps_the_outputs_of_its_exact_cells_alone(name: str) -> None:
    for cell in _cells(name):
        assert bool(cell["outputs"]) == _exact(cell), cell["source"]


def test_the_langgraph_program_of_the_page_is_the_notebooks() -> None:
    page = (FOLDER.parents[1] / "docs" / "howto" / "gateway.md").read_text()
    for cell in _cells("5_langgraph.ipynb"):
        assert "".join(cell["source"]) in page


@pytest.mark.notebooks
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_whole_and_its_exact_outputs_are_the_kept_ones(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    if name in FRAMEWORKS:
        pytest.importorskip(FRAMEWORKS[name])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(FOLDER / name, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
    ran = [cell for cell in notebook.cells if cell["cell_type"] == "code"]
    kept = [_text(cell) for cell in _cells(name) if _exact(cell)]
    assert [_text(cell) for cell in ran if _exact(cell)] == kept
