"""Critics shipped with colearn, by name."""

NAMES = {
    "centralized": "centralized:Centralized",
    "counterfactual": "counterfactual:Counterfactual",
    "decentralized": "decentralized:Decentralized",
    "tokenwise": "tokenwise:Tokenwise",
}
