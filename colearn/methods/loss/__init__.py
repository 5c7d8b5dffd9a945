"""Policy losses by name."""

NAMES = {"policy_gradient": "policy_gradient:PolicyGradient"}
