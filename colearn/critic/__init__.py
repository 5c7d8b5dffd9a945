"""The shipped critics, by name."""

NAMES = {
    "centralized": "centralized:Centralized",
    "decentralized": "decentralized:Decentralized",
    "tokenwise": "tokenwise:Tokenwise",
}
