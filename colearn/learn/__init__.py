"""Learners: one optimiser each, over rows of packed token sequences. The shipped kinds, by name."""

NAMES = {
    "deepspeed": "kinds:DeepSpeed",
    "local": "kinds:Local",
}
