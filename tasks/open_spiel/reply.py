"""Parses a reply into an action or a fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from colearn.text.reasoning import without_reasoning

Fault = Literal["", "malformed", "illegal"]
"""Why a reply is not valid: 'malformed' without an answer in the requested form, 'illegal' if the
answer is not a legal action; '' for a valid reply."""

_ANSWER = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>\s*\Z", re.DOTALL)


def read(reply: str, words: Mapping[str, int], *, tagged: bool) -> tuple[int | None, Fault]:
    """The action that `reply` names, or None with the fault.

    `tagged`: the reply must end with `<answer>WORD</answer>` and contain no other answer. Otherwise
    the whole reply, without surrounding space, is the word. Nothing is guessed.
    """
    reply = without_reasoning(reply)
    word = reply.strip()
    if tagged:
        match = _ANSWER.search(reply)
        if match is None or reply.count("<answer>") != 1:
            return None, "malformed"
        word = match.group(1).strip()
    if word in words:
        return words[word], ""
    return None, "illegal"
