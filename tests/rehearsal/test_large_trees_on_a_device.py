"""Packed trees on devices in name only: what the CPU computes, without a mask of tokens squared."""

from __future__ import annotations

import pytest

from colearn.models.flex import LARGEST_DENSE


@pytest.fixture(scope="module")
def passes(request, server):
    return {}


@pytest.fixture
def on_device(rehearse, passes):
    if "device" not in passes:
        passes["device"] = rehearse("tree_cases:large_tree", device="cuda:1")
    return passes["device"]


def test_a_large_tree_makes_no_tensor_of_tokens_squared(on_device):
    assert on_device["width"] ** 2 > LARGEST_DENSE
    too_large = {
        where: size for where, size in on_device["squares"].items() if size > LARGEST_DENSE
    }
    assert not too_large


def test_a_large_tree_is_read_as_on_the_cpu(rehearse, on_device):
    cpu = rehearse("tree_cases:large_tree", device="cpu")
    assert on_device["hidden"] == pytest.approx(cpu["hidden"], abs=1e-5)
    for made, expected in zip(on_device["gradients"], cpu["gradients"], strict=True):
        assert made == pytest.approx(expected, abs=1e-5)
