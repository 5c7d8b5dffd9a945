"""Parses a reply into an action or a fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from colearn.text.reasoning import without_reasoning

Fault = Literal["", "malformed", "illegal"]
"""Reason why a reply is not valid: 'malformed' if it contains no answer in the requested form, and
'illegal' if the answer is not a legal action; '' for a valid reply."""

_ANSWER = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>\s*\Z", re.DOTALL)


def read(reply: str, words: Mapping[str, int], *, tagged: bool) -> tuple[int | None, Fault]:
    """The action that `reply` names, or None with the fault.

    If `tagged` is true, the reply must end with `<answer>WORD</answer>` and contain no other
    answer. If `tagged` is false, the whole reply, without surrounding space, is the word. The
    parser never guesses.
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
