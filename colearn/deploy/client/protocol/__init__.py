"""Protocols of requests and answers: OpenAI's chat completions, which all inner code uses, and
translations of OpenAI's Responses and Anthropic's Messages. Also errors and limits."""
