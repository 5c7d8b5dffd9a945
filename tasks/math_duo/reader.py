"""Parses answers in a separate process, since sympy may not terminate."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from colearn.errors import MissingExtra

from ..answer_process import AnswerProcess

SCRIPT = Path(__file__).with_name("reader_process.py")


class AnswerReader(AnswerProcess):
    """Reads answers. An answer that takes more time or memory than `reader_process` allows counts
    as not a number."""

    def __init__(self) -> None:
        super().__init__(SCRIPT)

    def read(self, answer: str) -> float | None:
        """Errors: MissingExtra without math-verify."""
        value: float | None = self.ask(answer)
        return value

    def same(self, gold: str, answer: str) -> bool:
        """Whether math-verify considers the answer equal to the gold answer.

        Errors: MissingExtra without math-verify.
        """
        return self.ask([gold, answer]) is True

    def ask(self, question: Any) -> Any:
        if importlib.util.find_spec("math_verify") is None:
            raise MissingExtra("math-verify", "math")
        return super().ask(question)
