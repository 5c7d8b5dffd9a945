"""Generators: transformers in this process (default), vLLM. The shipped kinds, by name."""

NAMES = {
    "transformers": "kinds:Transformers",
    "vllm": "kinds:VLLM",
}
