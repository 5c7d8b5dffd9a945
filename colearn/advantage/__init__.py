"""The shipped advantages, by name."""

NAMES = {
    "bootstrap": "bootstrap:Bootstrap",
    "q_value": "q_value:QValue",
    "group_mean": "group_mean:GroupMean",
    "group_expectile": "group_expectile:GroupExpectile",
    "group_max": "group_max:GroupMax",
    "heterogeneous": "heterogeneous:Heterogeneous",
    "leave_one_out": "leave_one_out:LeaveOneOut",
    "raw_return": "raw_return:RawReturn",
    "agent_turn": "agent_turn:AgentTurn",
    "question": "question:Question",
    "role_baseline": "role_baseline:RoleBaseline",
    "sum_then_normalize": "sum_then_normalize:SumThenNormalize",
    "token_gae": "token_gae:TokenGAE",
    "turn_by_turn": "turn_by_turn:TurnByTurn",
}
