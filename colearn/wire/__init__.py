"""OpenAI's chat completions on the wire: request bodies, refusals and limits."""
