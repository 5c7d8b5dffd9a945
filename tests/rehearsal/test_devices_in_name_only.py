"""The rehearsal itself: counts known by hand, and seeded faults that must fall."""

from __future__ import annotations

import pytest

MISMATCH = "Expected all tensors to be on the same device"
RUN = {"family": "critic, window", "device": "cuda:1", "cuda_graphs": False}
FAULTS = {
    "what rows see stays on the CPU": (
        "colearn.engines.running",
        "self._on_device(self._visible)[:, None]",
        "torch.tensor(self._visible)[:, None]",
    ),
    "a batch stays on the CPU": (
        "colearn.training.learners.batch",
        "torch.tensor(values, dtype=torch.long, device=device)",
        "torch.tensor(values, dtype=torch.long)",
    ),
    "a value head stays on the CPU": (
        "colearn.models.build_networks",
        "ValueHead(width).to(network.base.device)",
        "ValueHead(width)",
    ),
    "a value head is on the first device": (
        "colearn.models.build_networks",
        "ValueHead(width).to(network.base.device)",
        'ValueHead(width).to("cuda:0")',
    ),
    "targets stay on the CPU": (
        "colearn.methods.values.critics",
        "outputs.values.new_tensor(targets)",
        '__import__("torch").tensor(targets)',
    ),
}


def test_costs_are_those_known_by_hand(rehearse):
    """A copy of 12 numbers, a product, a sum, a read and a cast."""
    spent = rehearse("decoding_cases:counted_twice")
    assert sum(spent["copies"].values()) == 1
    assert sum(spent["waits"].values()) == 1
    assert spent["operators"] == {"mm": 1, "sum": 1, "_to_copy (cast)": 1}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_tensor_of_another_device_is_noticed(rehearse, fault):
    with pytest.raises(AssertionError, match=MISMATCH):
        rehearse("run_cases:trained", fault=FAULTS[fault], **RUN)


def test_an_index_that_is_copied_for_every_token_is_noticed(rehearse):
    fault = (
        "colearn.engines.decoder",
        "drawing.choose(logits, draw_uniforms(rows, logits.device))",
        "drawing.choose(logits[torch.arange(len(rows))], draw_uniforms(rows, logits.device))",
    )
    each = rehearse("decoding_cases:per_token", fault=fault, adapters=0, compute="bfloat16")
    assert sum(each["copies"].values()) == 2
