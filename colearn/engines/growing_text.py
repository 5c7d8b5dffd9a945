"""Decodes an answer incrementally. Emits only whole characters, and only text that no stop string
can remove."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.rollout.agents.token_bytes import TextDecoder, WholeCharacters


def held_back(text: str, stops: Sequence[str]) -> int:
    """Returns the length of the longest suffix of `text` that is a prefix of one of `stops`."""
    longest = 0
    for stop in stops:
        for length in range(min(len(stop) - 1, len(text)), longest, -1):
            if text.endswith(stop[:length]):
                longest = length
                break
    return longest


class GrowingText:
    """Decodes one answer token by token.

    Stop strings in `own_stops` end the answer and stay in its text, as in training. Stop strings in
    `cut_stops` end the answer and are removed from its text. Concatenating the strings that `push`
    and `finish` return gives the final `text`, which equals the decoded answer if no stop string
    was removed.
    """

    def __init__(
        self, chat: TextDecoder, own_stops: Sequence[str], cut_stops: Sequence[str]
    ) -> None:
        self._chat, self._characters = chat, WholeCharacters(chat)
        self._own, self._cut = tuple(own_stops), tuple(cut_stops)
        self._longest = max((len(stop) for stop in (*self._own, *self._cut)), default=0)
        self._settled = ""
        self._given = 0
        self.stop: str | None = None
        """The first complete stop string in the text, if there is one."""
        self.cut_at: int | None = None
        """Length of the text before the `cut_stops` string that ended the answer; None if no string
        in `cut_stops` ended the answer."""

    @property
    def text(self) -> str:
        """The text returned so far."""
        return self._settled[: self._given]

    def push(self, token: int) -> str:
        """Append a token; returns the text that became final."""
        tail, whole = self._characters.push(token)
        searched = max(0, len(self._settled) - self._longest + 1)
        if whole:
            self._settled += tail
            tail = ""
        self._look(self._settled + tail, searched)
        return self._give(self._safe())

    def finish(self) -> str:
        """Return the rest of the text."""
        text = self._chat.decode(self._characters.tokens)
        if text.startswith(self.text):
            self._settled = text
        return self._give(len(self._settled) if self.cut_at is None else self.cut_at)

    def _look(self, text: str, searched: int) -> None:
        cut = _first(text, self._cut, searched)
        if cut is not None:
            self.cut_at = text.find(cut, searched)
        self.stop = _first(text, self._own, searched) if cut is None else cut

    def _safe(self) -> int:
        """Length of the text that no string in `cut_stops` can still remove."""
        if self.cut_at is not None:
            return min(self.cut_at, len(self._settled))
        return len(self._settled) - held_back(self._settled, self._cut)

    def _give(self, end: int) -> str:
        part = self._settled[self._given : end]
        self._given = max(self._given, end)
        return part


def _first(text: str, stops: Sequence[str], searched: int) -> str | None:
    """Returns the stop string that begins first in a text behind `searched`; None without one."""
    found = [stop for stop in stops if text.find(stop, searched) >= 0]
    return min(found, key=lambda stop: text.find(stop, searched), default=None)
