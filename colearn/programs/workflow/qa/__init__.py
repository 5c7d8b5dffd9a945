"""Question answering from a corpus: answer metrics, passages, retrieval."""

from .answers import accuracy, exact_match, f1, normalized
from .corpus import Corpus, Folder, Passage, Passages
from .dense import Dense
from .retriever import BM25, Retriever

__all__ = [
    "BM25",
    "Corpus",
    "Dense",
    "Folder",
    "Passage",
    "Passages",
    "Retriever",
    "accuracy",
    "exact_match",
    "f1",
    "normalized",
]
