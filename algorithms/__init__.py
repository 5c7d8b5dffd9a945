"""Names of the shipped algorithms. To add one, write a file and add a line to this table."""

if __name__ != "colearn.algorithms":  # the repository's root is on the path of an editable install
    raise ImportError(f"import colearn.algorithms, not {__name__}: every class would exist twice")

NAMES = {
    "collm_cc": "collm_cc:CoLLMCC",
    "collm_dc": "collm_dc:CoLLMDC",
    "coma": "coma:COMA",
    "magrpo": "magrpo:MAGRPO",
    "marloo": "marloo:MARLOO",
    "maremax": "maremax:MAReMax",
    "mareinforce": "mareinforce:MAREINFORCE",
    "at_grpo": "at_grpo:ATGRPO",
    "marshal": "marshal:MARSHAL",
    "spiral_rae": "spiral_rae:SpiralRAE",
    "mt_grpo": "mt_grpo:MTGRPO",
    "trajectory_grpo": "trajectory_grpo:TrajectoryGRPO",
    "grpo": "grpo:GRPO",
    "ac": "ac:AC",
    "mhgpo": "mhgpo:MHGPO",
    "mhgpo_is": "mhgpo:MHGPOIndependent",
    "mhgpo_rr": "mhgpo:MHGPORoundRobin",
    "mappo": "mappo:MAPPO",
    "mappo_call": "mappo:MAPPOInvocation",
    "distillation": "distillation:Distillation",
    "untrained": "untrained:Untrained",
}
