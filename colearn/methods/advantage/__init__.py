"""Advantage estimators shipped with colearn, by name."""

NAMES = {
    "gae": "gae:GAE",
    "counterfactual": "counterfactual:CounterfactualBaseline",
    "q_value": "q_value:QValue",
    "group_mean": "group_baseline:GroupMean",
    "group_expectile": "group_baseline:GroupExpectile",
    "group_max": "group_baseline:GroupMax",
    "heterogeneous": "heterogeneous:Heterogeneous",
    "leave_one_out": "group_baseline:LeaveOneOut",
    "raw_return": "raw_return:RawReturn",
    "agent_turn": "agent_turn_groups:AgentTurn",
    "question": "agent_turn_groups:AgentQuestion",
    "role_baseline": "self_play:RoleBaseline",
    "sum_then_normalize": "self_play:SumThenNormalize",
    "token_gae": "token_gae:TokenGAE",
    "turn_by_turn": "self_play:TurnByTurn",
    "zero": "zero:Zero",
}
