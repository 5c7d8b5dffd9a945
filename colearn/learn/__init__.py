"""Learners, by name of their kind. A learner trains one network with one optimiser on packed token
rows."""

NAMES = {
    "deepspeed": "kinds:DeepSpeed",
    "local": "kinds:Local",
}
