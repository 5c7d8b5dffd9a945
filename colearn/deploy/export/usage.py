"""Usage section of the model card: commands that run the agent."""

from __future__ import annotations

import json
from collections.abc import Sequence

from colearn.engines.vllm_options import RANKS

from .manifest import AgentManifest


def usage(
    manifest: AgentManifest,
    *,
    rank: int | None,
    exact: bool,
    needs_5: bool = False,
    tags: Sequence[str] = (),
) -> str:
    """Return text on how to serve and load the folder, with commands to run inside the folder.
    `rank`: rank of the adapter. `exact`: whether the chat template produces exactly the token ids
    of training. `needs_5`: whether transformers 4 cannot read the model. `tags`: special tokens
    that are part of the agent's answers."""
    adapter = manifest.weights == "adapter"
    base = f'{json.dumps(manifest.base)}, dtype="{manifest.dtype}"'
    loading = (
        _PEFT.format(base=base)
        if adapter
        else f"With transformers {_5 if needs_5 else _4}:\n{_LOAD}"
    )
    if tags:
        loading = loading.replace("skip_special_tokens=True", "skip_special_tokens=False")
    parts = [
        _COLEARN.format(agent=manifest.agent),
        loading,
        _vllm(manifest, rank),
        _TURNS,
        "" if exact else _INEXACT,
        _limits(manifest, tags),
        _CHECK,
    ]
    return "## Use\n\n" + "\n".join(part for part in parts if part)


def _vllm(manifest: AgentManifest, rank: int | None) -> str:
    options = [f"--dtype {manifest.dtype}"]
    if manifest.weights == "adapter":
        max_rank = next((limit for limit in RANKS if limit >= (rank or 1)), rank)
        options = [
            f"--dtype {manifest.dtype} --enable-lora --max-lora-rank {max_rank}",
            f"--lora-modules {manifest.agent}=.",
            "--tokenizer . --chat-template ./chat_template.jinja --generation-config .",
        ]
        model = str(manifest.base)
    else:
        options.append(f"--served-model-name {manifest.agent}")
        model = "."
    if manifest.sampling.temperature == 0:
        # without a temperature in generation_config.json vLLM samples at 1
        options.append("--override-generation-config '{\"temperature\": 0}'")
    lines = " \\\n    ".join([f"vllm serve {model}", *options])
    return f"With vLLM:\n\n```bash\n{lines}\n```\n"


def _limits(manifest: AgentManifest, tags: Sequence[str]) -> str:
    paragraphs = []
    if tags:
        names = ", ".join(f"`{tag}`" for tag in tags[:_MOST_TAGS])
        paragraphs.append(
            f"Its tokenizer lists tags of answers as special tokens ({names}), which decoders "
            'leave out: send `"skip_special_tokens": false` in requests (vLLM); `colearn serve` '
            "keeps them."
        )
    if manifest.window is not None:
        paragraphs.append(
            f"In training the agent saw the last {manifest.window} tokens of its history only, cut "
            "at the starts of turns; `colearn serve` does the same, other servers show it all."
        )
    if manifest.sampling.stop:
        stops = json.dumps(manifest.sampling.stop, ensure_ascii=False)
        paragraphs.append(
            f"Its answers also end at `{stops}`: give them as `stop` in requests (vLLM) or as "
            "`stop_strings` with `tokenizer` to `generate`; `colearn serve` knows them."
        )
    return "".join(f"{text}\n\n" for text in paragraphs).removesuffix("\n")


_MOST_TAGS = 8
"""Maximum number of tags that a card names."""

_COLEARN = """\
An OpenAI-compatible server that keeps the exact token ids and the cache of every session. It needs
`pip install -e ".[serve]"` in a clone of colearn:

```bash
colearn serve . --port 8000     # {agent}
```
"""

_4 = "4 or 5"
_5 = "5 (version 4 has no names for the rotary settings of this model, and fails)"

_LOAD = """
```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForCausalLM.from_pretrained(".")
messages = [{"role": "user", "content": "what the agent sees"}]
inputs = tokenizer.apply_chat_template(
    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"
)
ids = model.generate(**inputs)[0, inputs["input_ids"].shape[1] :]
print(tokenizer.decode(ids, skip_special_tokens=True))
```
"""

_PEFT = """\
With peft, on its base:

```python
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

base = AutoModelForCausalLM.from_pretrained({base})
model = PeftModel.from_pretrained(base, ".")
tokenizer = AutoTokenizer.from_pretrained(".")
messages = [{{"role": "user", "content": "what the agent sees"}}]
inputs = tokenizer.apply_chat_template(
    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"
)
settings = GenerationConfig.from_pretrained(".")
ids = model.generate(**inputs, generation_config=settings)[0, inputs["input_ids"].shape[1] :]
print(tokenizer.decode(ids, skip_special_tokens=True))
```
"""

_TURNS = """\
The chat template writes what the agent was trained on: each observation is a user message, each
action an assistant message, and its role prompt is the system message when there is none.
"""

_INEXACT = """\
This tokenizer splits a whole conversation into other tokens than the turns one by one, as training
did; only `colearn serve` with a `session_id` gives the agent the tokens that it was trained on.
"""

_CHECK = """\
Check the files:

```bash
sha256sum -c SHA256SUMS
```
"""
