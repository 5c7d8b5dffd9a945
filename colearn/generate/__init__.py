"""Generators: transformers (default), vLLM in this process, or a vLLM server; available by name."""

NAMES = {
    "transformers": "kinds:Transformers",
    "vllm": "kinds:VLLM",
    "vllm_server": "kinds:VLLMServer",
}
