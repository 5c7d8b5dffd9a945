"""Removes reasoning from a model's text before it is read as an answer, a call or a move."""

from __future__ import annotations

import re

from .spans import Span, joined

OPEN, CLOSE = "<think>", "</think>"
TOKENS = {
    OPEN: OPEN,
    CLOSE: CLOSE,
    "[THINK]": OPEN,
    "[/THINK]": CLOSE,
    "<seed:think>": OPEN,
    "</seed:think>": CLOSE,
    "<|channel>": OPEN,
    "<channel|>": CLOSE,
    "<|START_THINKING|>": OPEN,
    "<|END_THINKING|>": CLOSE,
    "<mm:think>": OPEN,
    "</mm:think>": CLOSE,
    "\u25c1think\u25b7": OPEN,
    "\u25c1/think\u25b7": CLOSE,
    "<|begin_of_thought|>": OPEN,
    "<|end_of_thought|>": CLOSE,
    "<thinking>": OPEN,
    "</thinking>": CLOSE,
    "<thought>": OPEN,
    "</thought>": CLOSE,
    "<reasoning>": OPEN,
    "</reasoning>": CLOSE,
    "<longcat_think>": OPEN,
    "</longcat_think>": CLOSE,
}
"""Tokens with which published models open and close reasoning: those of DeepSeek, Qwen, GLM and
Nemotron, of Magistral, of Seed-OSS, of Gemma 4, of Command A, of MiniMax M3, of Kimi-VL, of
OpenThinker and Sky-T1, of LongCat, and of models distilled from text with `<thinking>`, `<thought>`
or `<reasoning>`."""

_MARKS = {token.lower(): mark for token, mark in TOKENS.items()}
_SPELLINGS = (f"(?i:{re.escape(t)})" if t[0] == "<" else re.escape(t) for t in TOKENS)
_MARK = re.compile(rf"(?:{'|'.join(_SPELLINGS)})\s*")
"""A mark and the whitespace after it. Tags are marks in any case, since models that have no token
for a tag spell it freely; `[think]` in lower case is text."""
_OPENED = re.compile(rf"(?:{'|'.join(re.escape(t) for t, m in TOKENS.items() if m == OPEN)})\s*\Z")


def without_reasoning(text: str) -> str:
    """Return the answer in a text: everything outside the text's blocks of reasoning.

    A block without a closing mark was truncated and extends to the end. A closing mark without an
    opening mark ends reasoning that began before the text.
    """
    return joined(text, answer_spans(text))


def reasoning_of(text: str) -> str:
    """Return the reasoning in a text, without its marks: its blocks, as lines of one text."""
    blocks = (text[start:end].rstrip() for start, end in _split(text)[1])
    return "\n".join(block for block in blocks if block)


def answer_spans(text: str) -> list[Span]:
    """Return the parts of a text that `without_reasoning` keeps."""
    return _split(text)[0]


def _split(text: str) -> tuple[list[Span], list[Span]]:
    """Return the parts of a text that are its answer, and those that are its reasoning."""
    answer: list[Span] = []
    reasoning: list[Span] = []
    inside, end = False, 0
    for mark in _MARK.finditer(text):
        closes = _closes(mark)
        if closes and not inside:
            reasoning = sorted([*reasoning, *answer, (end, mark.start())])
            answer.clear()
        else:
            (reasoning if inside else answer).append((end, mark.start()))
        inside, end = not closes, mark.end()
    (reasoning if inside else answer).append((end, len(text)))
    return answer, reasoning


def is_balanced(text: str) -> bool:
    """Whether each mark in a text that opens reasoning is followed by one that closes it, and each
    closing mark closes a block that the text has opened."""
    inside = False
    for mark in _MARK.finditer(text):
        if _closes(mark) and not inside:
            return False
        inside = not _closes(mark)
    return not inside


def _closes(mark: re.Match[str]) -> bool:
    return _MARKS[mark[0].rstrip().lower()] == CLOSE


def opened_reasoning(prompt: str) -> str:
    """Return the end of a prompt that opens reasoning, for example `<think>` and a line break; ''
    if the prompt opens none."""
    opened = _OPENED.search(prompt)
    return "" if opened is None else opened[0]


def opening_mark(text: str) -> str:
    """Return the mark at the beginning of a text that opens reasoning, with the whitespace after
    it; '' if there is none."""
    mark = _MARK.match(text)
    return "" if mark is None or _closes(mark) else mark[0]


class AnswerStream:
    """Extracts the answer, without reasoning, from a text that arrives in parts.

    What was sent cannot be taken back: after a closing mark without an opening mark, the answer
    follows the reasoning that was sent as text.
    """

    def __init__(self) -> None:
        self.text = ""
        """The text so far, with its reasoning."""
        self._sent = ""

    @property
    def settled(self) -> str:
        """The text so far, without an end that may be the start of a mark."""
        return self.text[: len(self.text) - held_mark(self.text)]

    def push(self, part: str) -> str:
        """Add a part of the text, and return the part of the answer that has become final."""
        self.text += part
        answer = without_reasoning(self.settled)
        if not answer.startswith(self._sent):
            self._sent = ""
        return self._give(answer)

    def finish(self, answer: str) -> str:
        """Returns the part of the complete answer that `push` has not returned."""
        return self._give(answer)

    def _give(self, answer: str) -> str:
        tail = answer.removeprefix(self._sent) if answer.startswith(self._sent) else ""
        self._sent += tail
        return tail


def held_mark(text: str) -> int:
    """Length of the longest suffix of a text that may be the start of a reasoning mark."""
    longest = max(map(len, TOKENS)) - 1
    for length in range(min(longest, len(text)), 0, -1):
        if any(token.startswith(text[-length:].lower()) for token in _MARKS):
            return length
    return 0
