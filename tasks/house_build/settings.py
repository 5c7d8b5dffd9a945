"""Validates the settings of HouseBuild."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.errors import ConfigError

from ..checks import check_choice, check_finite, check_whole
from .file import read_houses
from .houses import FAMILIES, House, house_count, make_house

CHOICES = {
    "variant": ("paper", "comlrl"),
    "size": tuple(FAMILIES),
    "prompt": ("full", "compact"),
}
HOUSES, TRAIN_HOUSES = 10, 8


def check_choices(choices: Mapping[str, str | None]) -> None:
    """Raise ConfigError for an unknown choice; None selects the default."""
    for field, value in choices.items():
        if value is not None:
            check_choice(field, value, CHOICES[field])


def check_numbers(
    *,
    horizon: int,
    agents: int,
    max_commands: int | None,
    spiders: int,
    spider_attack: Sequence[int],
    reward_shift: float | None,
) -> None:
    """Raise ConfigError at the first invalid number."""
    check_whole("horizon", horizon, 1)
    check_whole("agents", agents, 1)
    check_whole("spiders", spiders, 0)
    pair = isinstance(spider_attack, Sequence) and len(spider_attack) == 2
    if not pair or isinstance(spider_attack, str):
        raise ConfigError(
            f"task.spider_attack: must be the lowest and the highest, got {spider_attack!r}; "
            "the default is [1, 3]"
        )
    for value in spider_attack:
        check_whole("spider_attack", value, 0)
    if spider_attack[0] > spider_attack[1]:
        raise ConfigError(f"task.spider_attack: {list(spider_attack)} is empty; swap the two")
    if max_commands is not None:
        check_whole("max_commands", max_commands, 1)
        if max_commands < agents:
            raise ConfigError(
                f"task.max_commands: {max_commands} leaves no command for some of {agents} agents; "
                f"set it to {agents} or more"
            )
    if reward_shift is not None:
        remedy = "leave it out for minus the highest reward"
        check_finite("reward_shift", reward_shift, remedy)


def choose_houses(
    *, size: str | None, houses: int | None, train_houses: int, houses_file: str | None
) -> dict[str, tuple[House, ...]]:
    """The houses of each split: the first `train_houses` form the training split, the others the
    test split."""
    if houses_file is None:
        size = "large" if size is None else size
        count = HOUSES if houses is None else houses
        check_whole("houses", count, 2)
        if count > house_count(size):
            raise ConfigError(
                f"task.houses: there are {house_count(size)} {size} houses, not {count}; "
                "set it lower"
            )
        chosen = tuple(make_house(size, number) for number in range(count))
    else:
        for field, value in (("size", size), ("houses", houses)):
            if value is not None:
                raise ConfigError(
                    f"task.{field}: the houses are those of houses_file; leave it out"
                )
        chosen = read_houses(houses_file)
        if len(chosen) < 2:
            raise ConfigError("task.houses_file: holds one house; add another for the test split")
    check_whole("train_houses", train_houses, 1)
    if train_houses >= len(chosen):
        raise ConfigError(
            f"task.train_houses: {train_houses} leaves none of {len(chosen)} houses for the test; "
            f"set it lower than {len(chosen)}"
        )
    return {"train": chosen[:train_houses], "test": chosen[train_houses:]}
