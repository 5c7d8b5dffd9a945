"""Dense retrieval: its mechanics, with a tiny random encoder."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import save_model

from colearn.errors import ConfigError
from colearn.programs.workflow.qa import Dense, Folder, Passage, Passages
from colearn.programs.workflow.qa.dense import _Encoder, _index
from colearn.tasks.search import MHGPOTeam

TEXTS = tuple(Passage(f"t{n}", " ".join(["word"] * n + [str(n)])) for n in range(1, 6))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("encoder"))


def by_hand(retriever: Dense, query: str) -> list[str]:
    """Titles by falling product, each text read alone, so that no padding can enter a mean."""
    encoder = _Encoder(retriever)
    asked = encoder.vectors([query])[0]
    products = [float(encoder.vectors([f"{p.title} {p.text}"])[0] @ asked) for p in TEXTS]
    return [TEXTS[n].title for n in np.argsort(-np.array(products), kind="stable")]


def test_passages_come_by_falling_product_with_the_query(path):
    retriever = Dense(Passages(TEXTS), path)
    titles = [passage.title for passage in retriever.search("word 3", 5)]
    assert titles == by_hand(retriever, "word 3")
    assert [passage.title for passage in retriever.search("word 3", 2)] == titles[:2]


def test_the_vectors_of_a_folder_are_kept_and_made_anew_where_it_changes(
    path, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("one\n\ntwo")
    retriever = Dense(Folder(str(tmp_path / "corpus")), path)
    first = retriever.search("one", 2)
    (kept,) = (tmp_path / "cache").glob("dense-*.npy")
    written = kept.stat().st_mtime_ns
    _index.cache_clear()
    assert _index(retriever).find("one", 2) == first
    assert kept.stat().st_mtime_ns == written
    (tmp_path / "corpus" / "b.txt").write_text("three")
    _index.cache_clear()
    assert len(_index(retriever).find("one", 9)) == 3
    assert len(list((tmp_path / "cache").glob("dense-*.npy"))) == 2


def test_another_encoder_at_the_same_place_makes_the_vectors_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("one\n\ntwo")
    for seed in (1, 2):
        place = save_model(tmp_path / "encoder", seed=seed)
        _index.cache_clear()
        index = _index(Dense(Folder(str(tmp_path / "corpus")), place))
        np.testing.assert_array_equal(index.vectors, index._made())


def test_a_team_searches_with_the_encoder_that_its_task_names(path):
    team = MHGPOTeam(encoder=path, people=4, towns=2)
    assert isinstance(team.retriever, Dense)
    assert len(team.retriever.search("trade", 3)) == 3
    with pytest.raises(ConfigError, match=r"^task\.encoder: no folder /nowhere"):
        MHGPOTeam(encoder="/nowhere", people=4, towns=2).retriever.search("trade", 1)
