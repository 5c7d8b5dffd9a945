"""Teams that answer questions from a corpus."""

from .extract import RetrieveExtractAnswer
from .loop import IterativeSearch
from .mhgpo import MHGPOTeam
from .parallel import ParallelRetrieval
from .single import SingleModel

__all__ = [
    "IterativeSearch",
    "MHGPOTeam",
    "ParallelRetrieval",
    "RetrieveExtractAnswer",
    "SingleModel",
]
