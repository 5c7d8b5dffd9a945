"""Training and comparing from Python objects: tasks, rewards, rows, models and algorithms."""
