"""Hosts, which place a team's models in processes. Shipped kinds are available by name."""

NAMES = {
    "local": "kinds:InProcess",
    "ray": "kinds:Ray",
}
