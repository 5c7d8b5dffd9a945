"""OpenAI-compatible server of one agent: HTTP routes and sessions around the decode engine."""
