"""Learners: one optimiser each, trained on packed token rows; the shipped kinds by name."""

NAMES = {
    "deepspeed": "kinds:DeepSpeed",
    "local": "kinds:Local",
}
