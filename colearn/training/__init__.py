"""The parts of a training run: rollout, update, evaluation, checkpoints."""
