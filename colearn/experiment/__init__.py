"""One run: roll out, score, update, evaluate, checkpoint."""
