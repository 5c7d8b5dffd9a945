"""Queries per second of the retriever: rebuilt, cached, and against word counts in Python.

    python benchmarks/retrieval.py [--passages 20000]

One process, one thread. The baseline scores the same passages by the same formula without an index
in arrays: a dictionary from words to passages.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from colearn.workflow.qa import BM25, Passage, Passages

WORDS = 5000
QUERIES = 500


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--passages", type=int, default=20000)
    passages = made(arguments.parse_args().passages)
    rng = np.random.default_rng(1)
    queries = [" ".join(words(rng, 4)) for _ in range(QUERIES)]
    retriever = BM25(Passages(passages))
    began = time.perf_counter()
    retriever.search("w1", 5)
    print(f"{len(passages)} passages; index made in {time.perf_counter() - began:.2f} s")
    plain = Plain(passages)
    first = rate(queries, lambda query: retriever.search(query, 5))
    again = rate(queries, lambda query: retriever.search(query, 5))
    counted = rate(queries[:50], lambda query: plain.search(query, 5))
    print("| retriever | queries/s | ratio |\n|---|---|---|")
    rows = {"dictionary of words": counted, "BM25": first, "BM25, asked again": again}
    for name, value in rows.items():
        print(f"| {name} | {value:,.0f} | {value / counted:,.1f} |")


def made(count: int) -> tuple[Passage, ...]:
    """Passages of 80 words, frequent ones more often."""
    rng = np.random.default_rng(0)
    return tuple(Passage(f"t{n}", " ".join(words(rng, 80))) for n in range(count))


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Words by Zipf's law."""
    return [f"w{min(int(rank), WORDS)}" for rank in rng.zipf(1.3, size=count)]


def rate(queries: Sequence[str], search: Callable[[str], object]) -> float:
    """Calls a second."""
    began = time.perf_counter()
    for query in queries:
        search(query)
    return len(queries) / (time.perf_counter() - began)


class Plain:
    """BM25 (k1 1.5, b 0.75) with dictionaries alone."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.lengths = [len(passage.text.split()) + 1 for passage in passages]
        self.mean = sum(self.lengths) / len(self.lengths)
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, passage in enumerate(passages):
            for word, times in Counter(f"{passage.title} {passage.text}".split()).items():
                self.postings[word].append((number, times))

    def search(self, query: str, k: int) -> list[int]:
        """Numbers of the best passages."""
        scores: dict[int, float] = defaultdict(float)
        for word in query.split():
            occurrences = self.postings.get(word, [])
            rare = math.log(
                1 + (len(self.lengths) - len(occurrences) + 0.5) / (len(occurrences) + 0.5)
            )
            for number, times in occurrences:
                length = 0.25 + 0.75 * self.lengths[number] / self.mean
                scores[number] += rare * times / (times + 1.5 * length)
        return sorted(scores, key=lambda number: -scores[number])[:k]


if __name__ == "__main__":
    main()
