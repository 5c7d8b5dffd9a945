"""Trains and compares from Python objects: tasks, rewards, rows, models and algorithms."""
