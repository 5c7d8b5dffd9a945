"""Kinds of learners, by name. A learner trains one network with one optimiser on packed token
rows."""

NAMES = {
    "deepspeed": "kinds:DeepSpeed",
    "local": "kinds:Local",
}
