"""An answer's text while it grows: whole characters only, and nothing that a stop may take back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_HALF = "\ufffd"
"""What a decoder writes for bytes that are no whole character (yet)."""

Decode = Callable[[tuple[int, ...]], str]


class GrowingText:
    """Decodes one answer token by token.

    `own_stops` end the answer and stay in it, as in training; `cut_stops` end it and do not. The
    parts given by `push` and `finish` join to the final `text`, which without a cut is the decoded
    answer. Only the tokens since the last whole character are decoded at each step.
    """

    def __init__(self, decode: Decode, own_stops: Sequence[str], cut_stops: Sequence[str]) -> None:
        self._decode = decode
        self._own, self._cut = tuple(own_stops), tuple(cut_stops)
        self._longest = max((len(stop) for stop in (*self._own, *self._cut)), default=0)
        self._tokens: list[int] = []
        self._before = self._read = 0  # decoded together: tokens[before:]; settled: up to read
        self._settled = ""
        self._given = 0
        self.stopped = False
        """A stop has completed."""
        self.cut_at: int | None = None
        """Where the text ends, if a cut stop ended it."""

    @property
    def text(self) -> str:
        """All that has been given."""
        return self._settled[: self._given]

    def push(self, token: int) -> str:
        """What can be given of the text now that `token` is part of it."""
        self._tokens.append(token)
        old = self._decode(tuple(self._tokens[self._before : self._read]))
        new = self._decode(tuple(self._tokens[self._before :]))
        searched = max(0, len(self._settled) - self._longest + 1)
        tail = new[len(old) :]
        if not new.endswith(_HALF):
            self._settled += tail
            self._before, self._read = self._read, len(self._tokens)
            tail = ""
        self._look(self._settled + tail, searched)
        return self._give(self._safe())

    def finish(self) -> str:
        """The rest of the text."""
        if self.cut_at is None:
            whole = self._decode(tuple(self._tokens))
            if whole.startswith(self._settled[: self._given]):
                self._settled = whole
            return self._give(len(self._settled))
        return self._give(self.cut_at)

    def _look(self, text: str, searched: int) -> None:
        found = [place for stop in self._cut if (place := text.find(stop, searched)) >= 0]
        if found:
            self.cut_at = min(found)
        self.stopped = bool(found) or any(text.find(stop, searched) >= 0 for stop in self._own)

    def _safe(self) -> int:
        """Length of the text that no cut stop can take back."""
        if self.cut_at is not None:
            return min(self.cut_at, len(self._settled))
        held = 0
        for stop in self._cut:
            for length in range(min(len(stop) - 1, len(self._settled)), held, -1):
                if self._settled.endswith(stop[:length]):
                    held = length
                    break
        return len(self._settled) - held

    def _give(self, end: int) -> str:
        part = self._settled[self._given : end]
        self._given = max(self._given, end)
        return part
