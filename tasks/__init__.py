"""The shipped tasks, by name. Changing a task's rewards or prompts is a new name or variant."""

NAMES = {
    "arxiv": "writing.arxiv:ArXiv",
    "assistant_team": "debate:AssistantTeam",
    "code_loop": "code_loop:ReflectiveVerification",
    "coder_tester": "coder_tester:CoderTester",
    "coop_humaneval": "coop_humaneval:CoopHumanEval",
    "debate": "debate:Debate",
    "dpomdp": "dpomdp:TextDecPOMDP",
    "house_build": "house_build:HouseBuild",
    "math_duo": "math_duo:MathDuo",
    "open_spiel": "open_spiel:OpenSpiel",
    "pettingzoo": "pettingzoo:PettingZoo",
    "plan_path": "plan_path:PlanPath",
    "sokoban": "sokoban:Sokoban",
    "search_extract": "search:RetrieveExtractAnswer",
    "search_loop": "search:IterativeSearch",
    "search_mhgpo": "search:MHGPOTeam",
    "search_parallel": "search:ParallelRetrieval",
    "str_build": "str_build:StrBuild",
    "sudoku": "sudoku:Sudoku",
    "tldr": "writing.tldr:TLDR",
}
