"""Items and rewards of the dispatch: a job goes to one of two specialists, who must look first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COLOURS = ("red", "green", "blue", "gold")
PLACES = ("hill", "barn", "lake", "mill", "road", "well")
WORK = {"paint": "painter", "plant": "gardener"}


def items(split: str) -> Sequence[dict[str, str]]:
    """Jobs such as "paint the hill" and the colour that only a look at the place shows. A sixth of
    the combinations is held out; every word is trained."""
    jobs = [
        {"job": f"{work} the {place}", "colour": colour}
        for work in WORK
        for place in PLACES
        for colour in COLOURS
    ]
    held_out = jobs[3::6]
    return held_out if split == "test" else [job for job in jobs if job not in held_out]


def grade(item: Mapping[str, str], result: Mapping[str, str]) -> dict[str, float]:
    """Pays the team for the right specialist, for a look at the place and for its colour."""
    right = result["specialist"] == WORK[item["job"].split()[0]]
    looked = result["looked"] == "yes"
    named = result["answer"].strip() == item["colour"]
    return {"team": 0.4 * right + 0.2 * looked + 0.4 * (looked and named)}
