"""On-disk cache of judges' verdicts, with one atomically written file per question."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from colearn.programs.files.cache import cache_folder, cache_place


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeScore:
    """A judge's score of one completion and the number of tokens used."""

    score: Annotated[float, Field(strict=True, allow_inf_nan=False)]
    prompt_tokens: int = 0
    completion_tokens: int = 0


_VERDICT = TypeAdapter(JudgeScore)


class Verdicts:
    """Verdicts by question, in the user's cache folder."""

    def read(self, question: Any, lowest: float, highest: float) -> JudgeScore | None:
        """The verdict on a question (plain data); None if its file is missing or damaged, or its
        score is out of range."""
        try:
            path = cache_folder() / self._path(question)
            verdict = _VERDICT.validate_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValidationError):
            return None
        return verdict if lowest <= verdict.score <= highest else None

    def write(self, question: Any, verdict: JudgeScore) -> None:
        """Store a verdict. Errors: ConfigError if the cache folder cannot be created."""
        path = cache_place(self._path(question))
        aside = path.with_suffix(f".{os.getpid()}.{id(verdict)}")
        aside.write_text(json.dumps(asdict(verdict)), encoding="utf-8")
        aside.replace(path)

    def _path(self, question: Any) -> str:
        """The path of a verdict in the cache folder."""
        text = json.dumps(question, sort_keys=True, ensure_ascii=False)
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
        return f"judge/{digest[:2]}/{digest[2:]}.json"
