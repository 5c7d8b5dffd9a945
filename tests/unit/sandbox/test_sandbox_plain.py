"""Serialisation of plain values between sandbox processes."""

from __future__ import annotations

import collections
import enum
import math
import os
import random
from typing import Any

import pytest

from colearn.programs.sandbox._plain import (
    DEEPEST,
    NotPlain,
    Opaque,
    dump,
    framed,
    frames,
    load,
    receive,
)

PLAIN = (
    *(None, True, False, 0, -1, 127, 128, -129, 10**40, -(10**40)),
    *(0.5, -0.0, math.inf, -math.inf, 1e-320, 2 - 3j, "", "zoë\0\ud800", b"\xff\0"),
    *([], [1, [2, (3,)]], (), {}, {"a": {1: None}, (1, 2): [True]}, set()),
    # by names of their own, since the repr of a set depends on the hash seed
    pytest.param({1, "a"}, id="a set of two"),
    pytest.param(frozenset({1, frozenset()}), id="a frozenset of two"),
    *(range(2, 9, 3), bytearray(b"ab")),
)


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_arrives_as_it_left(value: Any) -> None:
    arrived = load(dump(value))
    assert (type(arrived), arrived) == (type(value), value)


def test_nan_arrives_as_nan() -> None:
    assert math.isnan(load(dump(math.nan)))


def test_true_does_not_become_one() -> None:
    assert load(dump([1, True]))[1] is True


class Colour(enum.IntEnum):
    RED = 3


class Lying(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("value", "under"),
    (
        (Colour.RED, 3),
        (Lying(7), 7),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.namedtuple("Pair", "x y")(1, 2), (1, 2)),
    ),
    ids=repr,
)
def test_an_instance_of_a_subclass_arrives_as_the_plain_value_under_it(
    value: Any, under: Any
) -> None:
    arrived = load(dump(value))
    assert type(arrived) is type(under)
    assert under == arrived


def test_an_iterator_arrives_as_an_iterator_over_its_items() -> None:
    arrived = load(dump(number * 2 for number in range(3)))
    assert arrived != [0, 2, 4]
    assert list(arrived) == [0, 2, 4]


@pytest.mark.parametrize(
    "value", (object(), len, Opaque, {}.keys()), ids=["object", "function", "class", "view"]
)
def test_any_other_object_arrives_unequal_to_all_else(value: Any) -> None:
    arrived = load(dump([value]))[0]
    assert isinstance(arrived, Opaque)
    assert arrived != value
    assert arrived != load(dump([value]))[0]


def test_an_opaque_object_is_neither_true_nor_false() -> None:
    with pytest.raises(TypeError, match="class object"):
        bool(load(dump(object())))


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: list[Any] = []
    for _ in range(DEEPEST + 1):
        value = [value]
    with pytest.raises(NotPlain, match="deep"):
        dump(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotPlain, match="deep"):
        dump(value)


@pytest.mark.parametrize(
    "data",
    (
        b"",
        b"?",
        b"NN",
        b"i\0\0\0\x09a",
        b"l\xff\xff\xff\xff",
        b"e\0\0\0\1l\0\0\0\0",
        b"d\0\0\0\1l\0\0\0\0N",
        b"rTTf",
        b"s\0\0\0\1\xff",
        b"l\0\0\0\1" * 1000,
        b"f\0",
    ),
)
def test_bytes_that_are_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(NotPlain):
        load(data)


def test_random_bytes_are_refused_or_plain() -> None:
    rng = random.Random(0)
    alphabet = b"NTFifcsbBltezdrIO\0\0\0\0\1\2\3\xff"
    for _ in range(20_000):
        data = bytes(rng.choice(alphabet) for _ in range(rng.randrange(24)))
        try:
            load(data)
        except NotPlain:
            continue


def test_a_frame_cut_short_is_passed_over() -> None:
    data = framed([1]) + framed("two")
    assert list(frames(data[:-1])) == [[1]]


def test_a_frame_that_says_it_is_huge_is_refused_unread() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"\xff\xff\xff\xff")
    with pytest.raises(NotPlain, match="4294967295"):
        receive(reading)
    os.close(reading)
    os.close(writing)
