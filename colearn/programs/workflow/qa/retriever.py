"""BM25 retrieval over a corpus, with a cached index and cached results."""

from __future__ import annotations

import hashlib
import unicodedata
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from colearn.errors import required
from colearn.programs.files.cache import made_once

from .corpus import Corpus, Passage

KEPT_ANSWERS = 100_000
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\uac00-\ud7ff"  # Hangul, whose particles follow without a space
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Ranges of the scripts that are written without spaces between words."""
_WORD = rf"[^\W{_UNSPACED}]{{2,}}|(?=\w)[{_UNSPACED}]"
"""Pattern of a word: at least two letters or digits, or one character of an unspaced script."""
_WORD_KEY = hashlib.sha256(_WORD.encode()).hexdigest()[:8]


class Retriever(ABC):
    """Base class of retrievers. A subclass is a frozen dataclass, so that it pickles with a task;
    each process holds one copy of its index."""

    @abstractmethod
    def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """Returns up to k passages (k >= 1), best first; equal queries return equal passages."""


@dataclass(frozen=True)
class BM25(Retriever):
    """Ranks passages by the words that they (title included) share with the query; rarer words
    count more.

    In scripts without spaces between words, such as Chinese, Japanese and Thai, every character is
    a word. Texts are compared in Unicode's form NFKC, so that the composed and the decomposed form
    of a letter are equal.

    The index of a `Folder` is stored on disk and memory-mapped. Passages that share no word with
    the query are not returned. Errors: MissingExtra without the package bm25s.
    """

    corpus: Corpus
    k1: float = 1.5
    b: float = 0.75

    def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """Returns up to k passages by decreasing score. Ties keep the order of the corpus."""
        return _answer(self, query, k)


class _WordIndex:
    def __init__(self, retriever: BM25) -> None:
        self.engine: Any = required("bm25s", "search")
        self.passages = retriever.corpus.passages()
        digest = retriever.corpus.digest
        if digest is None:
            self.table = self._built(retriever)
            return
        name = f"bm25-{digest}-{_WORD_KEY}-{retriever.k1:g}-{retriever.b:g}"
        folder = made_once(
            name,
            "the index of the passages",
            lambda aside: self._built(retriever).save(str(aside), show_progress=False),
        )
        self.table = self.engine.BM25.load(str(folder), mmap=True)

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        words = self._words([query])[0]
        if not words:
            return ()
        scores = self.table.get_scores(words)
        matches = np.flatnonzero(scores > 0)
        if len(matches) > k:
            least = np.partition(scores[matches], -k)[-k]
            matches = matches[scores[matches] >= least]
        order = np.argsort(-scores[matches], kind="stable")[:k]
        return tuple(self.passages[n] for n in matches[order])

    def _built(self, retriever: BM25) -> Any:
        table = self.engine.BM25(k1=retriever.k1, b=retriever.b)
        texts = [f"{passage.title} {passage.text}" for passage in self.passages]
        table.index(self._words(texts), show_progress=False)
        return table

    def _words(self, texts: list[str]) -> list[list[str]]:
        words: list[list[str]] = self.engine.tokenize(
            [unicodedata.normalize("NFKC", text) for text in texts],
            token_pattern=_WORD,
            stopwords="en",
            return_ids=False,
            show_progress=False,
        )
        return words


@lru_cache(maxsize=8)
def _index(retriever: BM25) -> _WordIndex:
    return _WordIndex(retriever)


@lru_cache(maxsize=KEPT_ANSWERS)
def _answer(retriever: BM25, query: str, k: int) -> tuple[Passage, ...]:
    return _index(retriever).find(query, k)
