"""Rollout shapes, by name, and functions that grow trees."""

NAMES = {
    "chain": "shapes:Chain",
    "counterfactual_chain": "shapes:CounterfactualChain",
    "parallel": "shapes:Parallel",
    "tree": "shapes:KaryTree",
    "cross": "shapes:Cross",
    "fork_on": "forks:ForkOn",
    "greedy_tree": "greedy_tree:GreedyTree",
    "fork_on_first": "forks:ForkOnFirst",
    "independent": "forks:Independent",
    "round_robin": "forks:RoundRobin",
}
