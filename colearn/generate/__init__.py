"""Generators: transformers in this process (default), vLLM."""
