"""Rollout shapes, by name, and the grower that they guide."""

NAMES = {
    "chain": "chain:Chain",
    "parallel": "parallel:Parallel",
    "tree": "tree:KaryTree",
    "cross": "cross:Cross",
    "fork_on": "fork:ForkOn",
    "greedy_tree": "greedy_tree:GreedyTree",
    "fork_on_first": "mhgpo:ForkOnFirst",
    "independent": "mhgpo:Independent",
    "round_robin": "mhgpo:RoundRobin",
}
