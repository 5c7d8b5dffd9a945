"""Credit assignments shipped with colearn, by name."""

NAMES = {
    "team": "team:SharedReward",
    "mixed": "mixed:Mixed",
    "payoff": "payoff:Payoff",
    "concise": "concise:Concise",
    "backward": "backward:Backward",
    "invocation": "invocation:Invocation",
}
