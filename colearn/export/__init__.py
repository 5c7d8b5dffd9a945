"""Trained agents as folders: one for each, readable without this library."""
