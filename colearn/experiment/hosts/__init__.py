"""Model hosts: the placement of a run's models. Shipped kinds are available by name."""

NAMES = {
    "local": "kinds:InProcess",
    "ray": "kinds:Ray",
}
