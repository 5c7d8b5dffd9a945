"""Decoding on devices in name only: what one token costs, and that it says what the CPU says."""

from __future__ import annotations

import pytest

SETUPS = {0: "full weights", 1: "one adapter", 2: "two adapters"}
KERNELS = {0: 131, 1: 137, 2: 137}
"""Most kernels of one token of every row in a model of 4 layers, by number of adapters."""


def worst(places):
    return "\n".join(f"  {number:7.1f}  {where}" for where, number in list(places.items())[:12])


@pytest.fixture(scope="module")
def costs(server):
    return {}


@pytest.fixture(params=SETUPS, ids=SETUPS.get)
def token(request, rehearse, costs):
    """The number of adapters, and costs of one decoded token in bfloat16."""
    adapters = request.param
    if adapters not in costs:
        costs[adapters] = rehearse(
            "decoding_cases:per_token", adapters=adapters, compute="bfloat16"
        )
    return adapters, costs[adapters]


def test_a_token_runs_few_kernels(token):
    adapters, each = token
    assert sum(each["kernels"].values()) <= KERNELS[adapters], worst(each["kernels"])


def test_a_token_of_unequal_groups_runs_a_mask_more_for_each_product(rehearse):
    """In each of 4 layers: queries, keys and values; their output; gate and up; down."""
    each = rehearse("decoding_cases:per_token", adapters=2, compute="bfloat16", forks=[4, 3])
    assert sum(each["kernels"].values()) <= KERNELS[2] + 4 * 4, worst(each["kernels"])


def test_a_token_waits_for_the_device_once(token):
    _, each = token
    assert sum(each["waits"].values()) <= 1, worst(each["waits"])


def test_a_token_is_one_copy_to_the_device(token):
    _, each = token
    assert sum(each["copies"].values()) <= 1, worst(each["copies"])


def test_a_token_casts_no_weight(token):
    _, each = token
    assert not each["weight_casts"], worst(each["weight_casts"])


def test_keys_and_values_are_kept_in_the_compute_type(token):
    _, each = token
    assert each["cache"] == ["torch.bfloat16"]


@pytest.mark.parametrize(("adapters", "move"), [(0, "before"), (1, "after"), (2, "before")])
def test_a_device_says_what_the_cpu_says(rehearse, adapters, move):
    ask = {"adapters": adapters, "compute": "float32", "move": move}
    device = rehearse("decoding_cases:said", device="cuda:1", **ask)
    cpu = rehearse("decoding_cases:said", device="cpu", **ask)
    assert [tokens for tokens, _ in device] == [tokens for tokens, _ in cpu]
    for (_, one), (_, other) in zip(device, cpu, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize("adapters", SETUPS, ids=SETUPS.get)
def test_a_recorded_pass_says_what_the_pass_of_each_token_says(rehearse, adapters):
    case = rehearse("decoding_cases:recorded", adapters=adapters)
    assert [tokens for tokens, _ in case["graphs"]] == [tokens for tokens, _ in case["plain"]]
    for (_, one), (_, other) in zip(case["graphs"], case["plain"], strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert case["counts"] == [2, 9], "16 rows for 4 steps after their first token, 8 for 7"


@pytest.mark.parametrize("adapters", SETUPS, ids=SETUPS.get)
def test_a_replayed_token_waits_once_and_is_one_copy(rehearse, adapters):
    ask = {"adapters": adapters, "compute": "bfloat16", "cuda_graphs": True}
    each = rehearse("decoding_cases:per_token", **ask)
    assert sum(each["waits"].values()) <= 1, worst(each["waits"])
    assert sum(each["copies"].values()) <= 1, worst(each["copies"])
    assert not each["weight_casts"], worst(each["weight_casts"])


def test_a_recorded_pass_follows_the_adapters_of_its_rows(rehearse):
    assert max(rehearse("decoding_cases:selected")) <= 1e-5
