"""Reads, cleans and masks text: CSV, JSON, reasoning, secrets, notes to the user."""
