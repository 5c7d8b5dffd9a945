"""Trained agents without the trainer: export, servers, play and the client of other servers."""
