"""Generators, by name: transformers (the default), vLLM in this process, or a vLLM server."""

NAMES = {
    "transformers": "kinds:Transformers",
    "vllm": "kinds:VLLM",
    "vllm_server": "kinds:VLLMServer",
}
