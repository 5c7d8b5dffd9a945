"""Posts and abstracts with a small vocabulary, drawn from a grammar, for small models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from colearn.contract.seeding import derive_rng

Sentences = Sequence[Sequence[str]]
"""For each position in the text, the sentences that can occur there."""

_SLOT = re.compile(r"\{(\w+)\}")

POST: Sentences = (
    (
        "my {person} borrowed my {thing} {moment} and returned it broken.",
        "{moment} my {person} sold my {thing} without asking me.",
        "my {person} and I bought a {thing} together and now nobody wants to pay.",
        "I found my {thing} in the {place} of my {person} {moment}.",
    ),
    (
        "I talked to my {person} and got a very {feeling} answer.",
        "my {person} says that the {thing} was old and cheap.",
        "everybody in the {place} knows about it and takes a side.",
        "a {person} of mine saw it happen in the {place}.",
    ),
    (
        "I feel {feeling} and cannot sleep.",
        "the repair of the {thing} costs more than my rent.",
        "we will meet again in the {place} and I am {feeling}.",
        "I need the {thing} for my work in the {place}.",
    ),
    (
        "should I ask for money or forget it?",
        "how do I stay polite and still get my {thing} back?",
        "am I wrong to be {feeling} because of a {thing}?",
        "what would you do in my place?",
    ),
)

ABSTRACT: Sentences = (
    (
        "{subject} are important for {field} but hard to {verb}.",
        "in {field} little is known about {subject}.",
        "most studies of {subject} in {field} need costly {tool}.",
        "the number of {subject} grows and {field} cannot follow.",
    ),
    (
        "we present a {quality} {tool} that can {verb} {subject}.",
        "we {verb} {subject} with a {quality} {tool}.",
        "our {tool} learns to {verb} {subject} from few examples.",
        "we combine a {tool} with a {quality} model of {subject}.",
    ),
    (
        "experiments show that the {tool} is {quality} and twice as fast.",
        "in a trial with many {subject} the error fell by half.",
        "the {tool} works for {subject} that were never seen.",
        "a {quality} {tool} from {field} is beaten by a third.",
    ),
    (
        "the result matters for {field} and can {verb} other {subject}.",
        "we discuss limits and publish the {tool}.",
        "this makes {field} open to {quality} methods.",
        "future work will {verb} larger {subject}.",
    ),
)

WORDS: Mapping[str, Sequence[str]] = {
    "person": ("brother", "sister", "neighbour", "friend", "cousin", "landlord", "colleague"),
    "thing": ("bicycle", "camera", "guitar", "laptop", "jacket", "garden table", "piano"),
    "place": ("kitchen", "office", "cellar", "village", "garage", "school"),
    "moment": ("yesterday", "last week", "in winter", "on my birthday", "after the party"),
    "feeling": ("angry", "ashamed", "honest", "tired", "helpless", "lonely"),
    "subject": ("networks", "forests", "proteins", "markets", "robots", "languages", "rivers"),
    "field": ("biology", "economics", "medicine", "physics", "teaching", "engineering"),
    "tool": ("sensor", "program", "survey", "classifier", "microscope", "simulation"),
    "verb": ("measure", "predict", "compare", "control", "describe", "improve"),
    "quality": ("simple", "precise", "robust", "cheap", "modern", "compact"),
}


def generate(sentences: Sentences, split: str, count: int) -> list[str]:
    """The first `count` texts of a split; every call returns the same texts."""
    return [_text(sentences, derive_rng("writing", split, number)) for number in range(count)]


def _text(sentences: Sentences, rng: np.random.Generator) -> str:
    chosen = " ".join(options[int(rng.integers(len(options)))] for options in sentences)
    return _SLOT.sub(lambda slot: _pick(WORDS[slot[1]], rng), chosen)


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]
