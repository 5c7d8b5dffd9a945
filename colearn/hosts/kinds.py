"""The kinds of hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from colearn.config import ResolvedRun
from colearn.contract import HostKind, ModelHost

if TYPE_CHECKING:
    from colearn.models.load import Tokenizers


@dataclass(frozen=True, kw_only=True)
class Local(HostKind):
    """All models in this process; in a run of several processes each has all of them."""

    threads: bool = False
    """Models on different bases learn side by side, in threads. It pays where each base has a
    device of its own; on one CPU they would share its cores."""

    def build(self, run: ResolvedRun, tokenizers: Tokenizers) -> ModelHost:
        from .local import LocalHost

        return LocalHost(run, tokenizers, threads=self.threads)
