"""Model hosts: the placement of a run's models. Shipped kinds by name."""

NAMES = {
    "local": "kinds:InProcess",
    "ray": "kinds:Ray",
}
