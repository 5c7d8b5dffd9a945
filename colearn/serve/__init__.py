"""One agent behind an OpenAI-compatible server, and the client that plays it."""
