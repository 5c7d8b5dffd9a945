"""Small models whose values are known by hand or from the literature, as arrays."""

import numpy as np

from colearn.exact.model import TabularModel

NOTHING = ("nothing",)


def matrix_game(payoffs):
    """One state, one observation; payoffs has one axis for each agent."""
    payoffs = np.asarray(payoffs, dtype=float)
    count = payoffs.size
    return TabularModel(
        agents=("alice", "bob", "carol")[: payoffs.ndim],
        states=("only",),
        actions=tuple(tuple(f"a{k}" for k in range(size)) for size in payoffs.shape),
        observations=(NOTHING,) * payoffs.ndim,
        start=np.ones(1),
        transition=np.ones((count, 1, 1)),
        observation=np.ones((count, 1, 1)),
        reward=payoffs.reshape(count, 1, 1, 1),
    )


def climbing():
    return matrix_game([[11, -30, 0], [-30, 7, 6], [0, 0, 5]])


def penalty():
    return matrix_game([[10, 0, -100], [0, 2, 0], [-100, 0, 10]])


def two_step():
    """The first action of alice picks a game for turn 1: 7 whatever they do, or [[0, 1], [1, 8]].

    Both see which game it is: a state, an observation and a payoff matrix each.
    """
    transition = np.zeros((4, 4, 4))
    for joint in range(4):
        transition[joint, 0, 1 + joint // 2] = 1.0
        transition[joint, 1:, 3] = 1.0
    observation = np.zeros((4, 4, 4))
    observation[:, :, 0] = 1.0
    observation[:, 2] = (0.0, 0.0, 0.0, 1.0)
    reward = np.zeros((4, 4, 4, 4))
    reward[:, 1] = 7.0
    reward[:, 2] = np.array([0.0, 1.0, 1.0, 8.0])[:, None, None]
    return TabularModel(
        agents=("alice", "bob"),
        states=("start", "safe", "risky", "over"),
        actions=(("first", "second"),) * 2,
        observations=(("safe", "risky"),) * 2,
        start=np.array([1.0, 0.0, 0.0, 0.0]),
        transition=transition,
        observation=observation,
        reward=reward,
    )


def dec_tiger():
    """Nair et al. (2003). Both listening is the only joint action that tells or keeps anything."""
    # rows: tiger left, tiger right; listen 0, open-left 1, open-right 2, the second agent fastest
    reward = np.array(
        [
            [-2.0, -101.0, 9.0, -101.0, -50.0, -100.0, 9.0, -100.0, 20.0],
            [-2.0, 9.0, -101.0, 9.0, 20.0, -100.0, -101.0, -100.0, -50.0],
        ]
    )
    transition = np.full((9, 2, 2), 0.5)
    transition[0] = np.eye(2)
    observation = np.full((9, 2, 4), 0.25)
    observation[0] = [[0.7225, 0.1275, 0.1275, 0.0225], [0.0225, 0.1275, 0.1275, 0.7225]]
    return TabularModel(
        agents=("alice", "bob"),
        states=("tiger-left", "tiger-right"),
        actions=(("listen", "open-left", "open-right"),) * 2,
        observations=(("hear-left", "hear-right"),) * 2,
        start=np.array([0.5, 0.5]),
        transition=transition,
        observation=observation,
        reward=np.broadcast_to(reward.T[:, :, None, None], (9, 2, 2, 4)),
    )


def random_model(seed, *, agents=2, states=3, actions=2, observations=2):
    """Dense random probabilities and rewards in [-1, 1]."""
    rng = np.random.default_rng(seed)
    joint_actions, joint_observations = actions**agents, observations**agents
    return TabularModel(
        agents=("alice", "bob", "carol")[:agents],
        states=tuple(f"s{k}" for k in range(states)),
        actions=(tuple(f"a{k}" for k in range(actions)),) * agents,
        observations=(tuple(f"o{k}" for k in range(observations)),) * agents,
        start=rng.dirichlet(np.ones(states)),
        transition=rng.dirichlet(np.ones(states), size=(joint_actions, states)),
        observation=rng.dirichlet(np.ones(joint_observations), size=(joint_actions, states)),
        reward=rng.uniform(-1, 1, size=(joint_actions, states, states, joint_observations)),
    )


def vault():
    """Two keys, left 0 or right 1, each seen by its holder once, after turn 0; then it is dark.

    At turns 1 to 5 the lock moves a notch if both turn their own key's way; turn 5 pays 10 if that
    makes at least three. State: keys, turn, notches; the last one is the end.
    """
    places = [(k, t, n) for k in range(4) for t in range(6) for n in range(4) if n <= max(0, t - 1)]
    number = {place: k for k, place in enumerate(places)}
    over = len(places)
    transition = np.zeros((4, over + 1, over + 1))
    observation = np.zeros((4, over + 1, 9))
    reward = np.zeros((4, over + 1, 1, 1))
    transition[:, over, over] = observation[:, over, 8] = 1.0
    for (keys, turn, notches), state in number.items():
        observation[:, state, 3 * (keys // 2) + keys % 2 if turn == 1 else 8] = 1.0
        for joint in range(4):
            reached = min(3, notches + (turn > 0 and joint == keys))
            transition[joint, state, number.get((keys, turn + 1, reached), over)] = 1.0
            reward[joint, state] = 10.0 * (turn == 5 and reached == 3)
    start = np.zeros(over + 1)
    start[[number[keys, 0, 0] for keys in range(4)]] = 0.25
    return TabularModel(
        agents=("alice", "bob"),
        states=(*(f"{k}-{t}-{n}" for k, t, n in places), "over"),
        actions=(("left", "right"),) * 2,
        observations=(("left", "right", "dark"),) * 2,
        start=start,
        transition=transition,
        observation=observation,
        reward=np.broadcast_to(reward, (4, over + 1, over + 1, 9)),
    )
