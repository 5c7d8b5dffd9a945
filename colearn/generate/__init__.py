"""Generators: transformers (default), vLLM, a vLLM server. Shipped kinds by name."""

NAMES = {
    "transformers": "kinds:Transformers",
    "vllm": "kinds:VLLM",
    "vllm_server": "kinds:VLLMServer",
}
