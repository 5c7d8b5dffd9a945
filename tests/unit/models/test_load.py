"""Base weights in memory, as their file's layout leaves them or not."""

from __future__ import annotations

import torch
from safetensors.torch import load_file, save_file
from tiny import save_model

from colearn.models.load import load_base


def test_weights_begin_at_torchs_boundaries_wherever_the_file_has_them(tmp_path):
    save_model(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    offsets = set()
    for longer in range(2):  # the weights follow a header of a multiple of 8 bytes
        save_file(weights, file, {"format": "pt", "note": "x" * 8 * longer})
        offsets.add((8 + int.from_bytes(file.read_bytes()[:8], "little")) % 64)
        base = load_base(
            str(tmp_path), compute="float32", trained=True, device=torch.device("cpu"), field="path"
        )
        tensors = [*base.model.parameters(), *base.model.buffers()]
        assert {tensor.data_ptr() % 64 for tensor in tensors} == {0}
        assert base.causal.get_input_embeddings().weight.equal(weights["model.embed_tokens.weight"])
    assert offsets != {0}
