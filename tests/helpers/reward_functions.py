"""Reward functions with TRL's signature, right and wrong ones."""

from __future__ import annotations


def matches(prompts, completions, colour, **_):
    return [float(said == right) for said, right in zip(completions, colour, strict=True)]


def length(prompts, completions, completion_ids, **_):
    return [
        len(said) + 100.0 * len(ids) for said, ids in zip(completions, completion_ids, strict=True)
    ]


async def later(prompts, completions, **_):
    return [0.5 for _ in completions]


def skips(prompts, completions, **_):
    return [None for _ in completions]


def first_word(prompts, completions, team_completions, **_):
    return [float(team["one"] == "yes") for team in team_completions]


def too_many(prompts, completions, **_):
    return [1.0, 2.0]


def no_list(prompts, completions, **_):
    return 1.0


def no_number(prompts, completions, **_):
    return ["much"]


def fails(prompts, completions, **_):
    raise ValueError("no such word")


async def fails_later(prompts, completions, **_):
    raise ValueError("no such word")


def not_a_number(prompts, completions, **_):
    return [float("nan")]


def only_red(prompts, completions, colour, **_):
    return [1.0 if right == "red" else None for right in colour]


async def only_blue(prompts, completions, colour, **_):
    return [0.25 if right == "blue" else None for right in colour]


def text(prompts, completions, **_):
    return ["1"]


def bare_text(prompts, completions, **_):
    return "1"


def mapping(prompts, completions, **_):
    return {1: 2.0}


def beyond(prompts, completions, **_):
    return [10**400]


def boundless(prompts, completions, **_):
    return [float("inf")]


SEEN = []


def looks(prompts, completions, **columns):
    SEEN.append((prompts, completions, columns))
    return [0.0]


CALLS = []


def recorded(prompts, completions, colour, **columns):
    CALLS.append({"prompts": prompts, "completions": completions, "colour": colour, **columns})
    said = [one[0]["content"].strip() for one in completions]
    return [float(one == right) for one, right in zip(said, colour, strict=True)]


def other_column(prompts, completions, answers, **_):
    """Asks for a column that no row has."""
    return [0.0 for _ in completions]


def no_more(prompts, completions):
    """Takes no columns."""
    return [0.0 for _ in completions]
