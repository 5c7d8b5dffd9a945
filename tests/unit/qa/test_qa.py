"""Scores of answers as SQuAD's script counts them, corpora, and what a retriever finds."""

from __future__ import annotations

import os
import pickle
import sys

import pytest

import colearn.programs.workflow.qa.retriever as module
from colearn.errors import ConfigError, MissingExtra
from colearn.programs.workflow.qa import (
    BM25,
    Folder,
    Passage,
    Passages,
    accuracy,
    exact_match,
    f1,
    normalized,
)

bm25s = pytest.importorskip("bm25s", reason="needs the search extra")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat, a Dog!", "cat dog"),
        ("an apple a day", "apple day"),
        ("U.S.A.", "usa"),
        ("rock-and-roll", "rockandroll"),
        ("Anna the-atre", "anna theatre"),
        ("  \n", ""),
        ("The", ""),
        ("naïve “quotes”", "naïve “quotes”"),
    ],
)
def test_answers_are_normalized_as_squad_does(text, expected):
    assert normalized(text) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("the Eiffel Tower", ["Eiffel tower"], 1.0),
        ("Eiffel Tower in Paris", ["the Eiffel Tower"], 2 * (2 / 4) * 1.0 / (2 / 4 + 1.0)),
        ("cat cat dog", ["cat dog dog"], 2 * (2 / 3) * (2 / 3) / (4 / 3)),
        ("cat cat dog", ["cat cat"], 2 * (2 / 3) * 1.0 / (5 / 3)),
        ("Berlin", ["Paris"], 0.0),
        ("", ["Paris"], 0.0),
        ("the", ["a"], 1.0),
        ("new york", ["york", "new york city"], 2 * 1.0 * (2 / 3) / (5 / 3)),
    ],
)
def test_f1_is_over_words_and_the_best_gold_answer_counts(answer, gold, expected):
    assert f1(answer, gold) == pytest.approx(expected)


def test_an_exact_match_is_of_the_normalized_texts():
    assert exact_match("The answer.", ["answer"]) == 1.0
    assert exact_match("answer is", ["answer", "is answer"]) == 0.0


def test_accuracy_asks_that_the_gold_words_stand_in_the_answer_in_a_row():
    assert accuracy("It is the Eiffel Tower, Paris", ["Eiffel tower"]) == 1.0
    assert accuracy("Tower of Eiffel", ["Eiffel tower"]) == 0.0
    assert accuracy("twenty", ["ten", "twent"]) == 0.0


PETS = (
    Passage("cat", "sleeps on the sofa"),
    Passage("dog", "barks at the cat"),
    Passage("cow", "gives milk"),
    Passage("goat", "gives milk"),
)


def test_a_passage_is_found_by_its_words_and_by_its_title():
    retriever = BM25(Passages(PETS))
    assert [passage.title for passage in retriever.search("barks", 2)] == ["dog"]
    assert {passage.title for passage in retriever.search("cat", 2)} == {"cat", "dog"}


def test_equal_passages_come_in_the_corpus_order_up_to_k():
    retriever = BM25(Passages(PETS))
    assert [passage.title for passage in retriever.search("milk", 5)] == ["cow", "goat"]
    assert [passage.title for passage in retriever.search("milk", 1)] == ["cow"]


@pytest.mark.parametrize("query", ["", "the", "zebra", "?!"])
def test_a_query_that_shares_no_word_finds_nothing(query):
    assert BM25(Passages(PETS)).search(query, 3) == ()


CITIES = (
    Passage("", "北京是中国的首都"),
    Passage("", "上海是中国最大的城市"),
    Passage("", "東京は日本の首都です"),
    Passage("", "กรุงเทพเป็นเมืองหลวงของไทย"),
    Passage("", "서울은 한국의 수도이다"),
    Passage("", "Le café noir"),
    Passage("", "ハンカクカタカナ"),
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("上海", 1),
        ("東京", 2),
        ("กรุงเทพ", 3),
        ("서울", 4),
        ("cafe\u0301", 5),
        ("\uff8a\uff9d\uff76\uff78", 6),
    ],
    ids=["Chinese", "Japanese", "Thai", "Korean", "decomposed", "half-width"],
)
def test_a_word_is_found_in_scripts_without_spaces_and_in_other_forms_of_unicode(query, found):
    assert BM25(Passages(CITIES)).search(query, 1) == (CITIES[found],)


def test_words_with_spaces_are_those_of_bm25s():
    texts = ["The U.S. won 3 of 10 in naïve Привет_мир, don't they?", "x y zz Straße 7up"]
    ours = bm25s.tokenize(
        texts, token_pattern=module._WORD, stopwords="en", return_ids=False, show_progress=False
    )
    theirs = bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
    assert ours == theirs


def test_a_folder_is_read_file_by_file(tmp_path):
    (tmp_path / "b.txt").write_text("one\ntwo\n\nthree")
    (tmp_path / "a.jsonl").write_text('{"title": "T", "text": "four"}\n')
    (tmp_path / "c.csv").write_text("not read")
    assert Folder(str(tmp_path)).passages() == (
        Passage("T", "four"),
        Passage("b", "one two"),
        Passage("b", "three"),
    )


def test_a_folder_s_index_is_kept_and_made_anew_where_a_file_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("the red fox\n\nthe blue whale")
    retriever = BM25(Folder(str(corpus)))
    assert [passage.text for passage in retriever.search("whale", 2)] == ["the blue whale"]
    built = []
    monkeypatch.setattr(module._WordIndex, "_built", lambda *given: built.append(given))
    module._index.cache_clear()
    module._answer.cache_clear()
    assert [passage.text for passage in retriever.search("fox", 2)] == ["the red fox"]
    assert not built
    monkeypatch.undo()
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    (corpus / "a.txt").write_text("the green fox and more")
    module._index.cache_clear()
    module._answer.cache_clear()
    assert [passage.text for passage in retriever.search("fox", 2)] == ["the green fox and more"]


def test_indexes_that_differ_in_b_are_written_to_folders_of_their_own(tmp_path, monkeypatch):
    """While they are made, too: two processes may make them at the same time."""
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text("the red fox")
    written, real = [], bm25s.BM25.save
    monkeypatch.setattr(
        bm25s.BM25, "save", lambda *given, **more: written.append(given[1]) or real(*given, **more)
    )
    for b in (0.25, 0.75):
        BM25(Folder(str(tmp_path)), b=b).search("fox", 1)
    first, second = written
    assert first != second


def test_a_retriever_pickles_without_its_index():
    retriever = BM25(Passages(PETS))
    retriever.search("cat", 1)
    assert pickle.loads(pickle.dumps(retriever)) == retriever
    assert len(pickle.dumps(retriever)) < 1000


@pytest.mark.parametrize(
    "line", ["nonsense", '{"title": "T"}', "[1]", '{"title": null, "text": "x"}']
)
def test_a_line_that_is_no_passage_is_named(tmp_path, line):
    (tmp_path / "a.jsonl").write_text('{"title": "T", "text": "x"}\n' + line)
    with pytest.raises(ConfigError, match=r"line 2 of .*a\.jsonl is no passage"):
        Folder(str(tmp_path)).passages()


def test_what_is_no_file_is_no_part_of_a_corpus(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "gone.md").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe.jsonl")
    corpus = Folder(str(tmp_path))
    assert corpus.passages() == (Passage("a", "one"),)
    assert corpus.digest


def test_an_empty_folder_is_a_mistake(tmp_path):
    with pytest.raises(ConfigError, match="no passages under"):
        Folder(str(tmp_path)).passages()


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtra, match=r"bm25s .*colearn-llm\[search\]"):
        BM25(Passages(PETS[:3])).search("milk", 1)
