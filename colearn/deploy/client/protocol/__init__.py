"""Implementation of OpenAI's chat completions protocol: request bodies, errors and limits."""
