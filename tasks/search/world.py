"""An invented country: people, towns, facts about them, and questions with exactly one answer.

Every fact is in a passage that can be retrieved, so retrieval, reasoning and answers can be scored
without a data set. Each name is a single word, so that a small model can copy it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from colearn.contract.seeding import derive_rng
from colearn.programs.workflow.qa import Corpus, Passage

KINDS = ("single", "linked", "bridge")
_FIRST = ("al", "bor", "cor", "del", "el", "fen", "gar", "hol", "is", "jor", "kel", "lor", "mar")
_LAST = ("an", "bert", "da", "dis", "eth", "in", "ka", "la", "mir", "ot", "ric", "us", "win", "yn")
_TOWN = ("ton", "ford", "burg", "mouth", "field")
TOWN_FACTS = {
    "mayor": ("son", "sen", "stein", "dottir"),
    "river": ("water", "brook", "bourne", "flow"),
    "church": ("minster", "kirk", "chapel", "abbey"),
}
"""Properties of a town, each with the endings of its names."""
MOST_PEOPLE = len(_FIRST) * len(_LAST)
MOST_TOWNS = len(_FIRST) * min(map(len, (_TOWN, *TOWN_FACTS.values())))
"""Maximum numbers of different names."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A question, its only answer, and the titles of its supporting passages."""

    text: str
    answer: str
    titles: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class World(Corpus):
    """The corpus of the country for a seed: up to 182 people and 52 towns.

    A person's passage states the birthplace and the occupation. A town's passage states the town's
    mayor, river and church. The passages of half of the towns also name the people born there.
    """

    seed: int = 0
    people: int = 48
    towns: int = 12

    def passages(self) -> tuple[Passage, ...]:
        """The people's passages, then the towns'."""
        return _made(self).passages

    def questions(self, split: str, kinds: tuple[str, ...]) -> tuple[Fact, ...]:
        """Returns the questions of 'train' or 'test'. One in four questions is a test question, for
        any selection of kinds.

        single: the question asks for one fact of a person or a town.
        linked: the question asks for a fact of the town where a person was born. The town's passage
        names the person, so one search can find both passages.
        bridge: the question asks for the same facts as a linked question, but the town's passage
        does not name the person. A first search must therefore find the town.
        """
        questions = _made(self).questions
        chosen = [
            question
            for question in questions
            if (derive_rng(self.seed, "split", question.text).random() < 0.25) == (split == "test")
        ]
        return tuple(question for question in chosen if question.kind in kinds)


@dataclass(frozen=True, slots=True)
class _Made:
    passages: tuple[Passage, ...]
    questions: tuple[Fact, ...]


@lru_cache(maxsize=8)
def _made(world: World) -> _Made:
    rng = derive_rng(world.seed, "world")
    people = _names(world.people, _FIRST, _LAST, world.seed, "people")
    towns = _names(world.towns, _FIRST, _TOWN, world.seed, "towns")
    trades = ("baker", "smith", "pilot", "nurse", "singer", "judge")
    born = {person: towns[int(rng.integers(len(towns)))] for person in people}
    trade = {person: trades[int(rng.integers(len(trades)))] for person in people}
    values = {
        fact: _names(world.towns, _FIRST, endings, world.seed, fact)
        for fact, endings in TOWN_FACTS.items()
    }
    facts = {
        town: {fact: values[fact][number] for fact in TOWN_FACTS}
        for number, town in enumerate(towns)
    }
    passages = [
        Passage(person, f"{person} town {born[person]} trade {trade[person]}") for person in people
    ]
    for number, town in enumerate(towns):
        description = " ".join(f"{fact} {value}" for fact, value in facts[town].items())
        named = [person for person in people if born[person] == town] if number % 2 == 0 else []
        people_of = f" home of {' '.join(named)}" if named else ""
        passages.append(Passage(town, f"{town} {description}{people_of}"))
    linked = set(towns[::2])
    questions: list[Fact] = []
    for person in people:
        town = born[person]
        questions.append(Fact(f"town of {person}", town, (person,), "single"))
        questions.append(Fact(f"trade of {person}", trade[person], (person,), "single"))
        kind = "linked" if town in linked else "bridge"
        for fact, value in facts[town].items():
            text = f"{fact} of town of {person}"
            questions.append(Fact(text, value, (person, town), kind))
    for town in towns:
        for fact, value in facts[town].items():
            questions.append(Fact(f"{fact} of {town}", value, (town,), "single"))
    return _Made(tuple(passages), tuple(questions))


def _names(
    count: int, first: tuple[str, ...], last: tuple[str, ...], seed: int, kind: str
) -> tuple[str, ...]:
    names = sorted(start + end for start in first for end in last)
    order = derive_rng(seed, kind).permutation(len(names))
    return tuple(names[n] for n in order[:count])
