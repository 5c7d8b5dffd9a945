"""OpenAI-compatible server of one agent: HTTP and sessions around the decode engine."""
