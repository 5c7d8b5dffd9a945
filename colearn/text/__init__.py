"""Reads CSV, JSON and YAML, removes reasoning, masks secrets, and prints notes to the user."""
