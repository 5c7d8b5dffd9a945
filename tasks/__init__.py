"""The shipped tasks, by name. A task with changed rewards or prompts gets a new name or variant."""

if __name__ != "colearn.tasks":  # the repository's root is on the path of an editable install
    raise ImportError(f"import colearn.tasks, not {__name__}: every class would exist twice")

NAMES = {
    "arxiv": "writing.arxiv:ArXiv",
    "assistant_team": "debate:AssistantTeam",
    "code_loop": "code_loop:ReflectiveVerification",
    "coder_tester": "coder_tester:CoderTester",
    "coop_humaneval": "coop_humaneval:CoopHumanEval",
    "dataset": "dataset:Dataset",
    "debate": "debate:Debate",
    "dpomdp": "dpomdp:TextDecPOMDP",
    "environment": "environment:Environment",
    "gateway": "colearn.programs.gateway.task:Gateway",
    "harbor": "harbor:Harbor",
    "harvest": "harvest:Harvest",
    "house_build": "house_build:HouseBuild",
    "math_duo": "math_duo:MathDuo",
    "open_spiel": "open_spiel:OpenSpiel",
    "openenv": "openenv:OpenEnv",
    "pettingzoo": "pettingzoo:PettingZoo",
    "plan_path": "plan_path:PlanPath",
    "reasoning_gym": "reasoning_gym:ReasoningGym",
    "sokoban": "sokoban:Sokoban",
    "search_extract": "search:RetrieveExtractAnswer",
    "search_loop": "search:IterativeSearch",
    "search_mhgpo": "search:MHGPOTeam",
    "search_parallel": "search:ParallelRetrieval",
    "search_single": "search:SingleModel",
    "solver": "debate:Solver",
    "str_build": "str_build:StrBuild",
    "sudoku": "sudoku:Sudoku",
    "textarena": "textarena:TextArena",
    "tldr": "writing.tldr:TLDR",
    "verifiers": "verifiers:Verifiers",
    "workflow": "colearn.programs.workflow.declared:DeclaredWorkflow",
}
PACKAGES = {
    "open_spiel": ("pyspiel",),
    "pettingzoo": ("pettingzoo",),
    "reasoning_gym": ("reasoning_gym",),
    "textarena": ("textarena",),
    "verifiers": ("verifiers", "{env}"),
}
"""Modules of installed packages that play a task's episodes. `{env}`: the package that the setting
`env` names."""
