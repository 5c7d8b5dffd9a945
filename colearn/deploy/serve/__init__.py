"""OpenAI-compatible server for one agent: HTTP routes and sessions around the decode engine."""
