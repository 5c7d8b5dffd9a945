"""Host kinds: the settings of each, and how it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from colearn.config import ResolvedRun
from colearn.contract import HostKind, ModelHost

if TYPE_CHECKING:
    from colearn.models.load import Tokenizers


@dataclass(frozen=True, kw_only=True)
class Local(HostKind):
    """All models in this process. In a run of several processes each process holds all of them."""

    threads: bool = False
    """Models on different bases update at the same time, one thread per base. Useful where each
    base has its own device; on one CPU the threads share its cores."""

    def build(self, run: ResolvedRun, tokenizers: Tokenizers) -> ModelHost:
        from .local import LocalHost

        return LocalHost(run, tokenizers, threads=self.threads)
