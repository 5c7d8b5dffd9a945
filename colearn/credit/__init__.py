"""The shipped kinds of credit, by name."""

NAMES = {
    "team": "team:Team",
    "mixed": "mixed:Mixed",
    "payoff": "payoff:Payoff",
    "backward": "backward:Backward",
    "invocation": "invocation:Invocation",
}
