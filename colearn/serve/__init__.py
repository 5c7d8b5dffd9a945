"""One agent behind an OpenAI-compatible server: HTTP and sessions around the decode engine."""
