"""Credit assignments shipped with colearn, by name."""

NAMES = {
    "team": "shared_reward:SharedReward",
    "mixed": "mixed:Mixed",
    "payoff": "payoff:Payoff",
    "concise": "concise:Concise",
    "backward": "backward:Backward",
    "invocation": "invocation:Invocation",
}
