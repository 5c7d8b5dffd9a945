"""The shipped tasks, by name. Changing a task's rewards or prompts is a new name or variant."""

NAMES = {
    "arxiv": "writing.arxiv:ArXiv",
    "coop_humaneval": "coop_humaneval:CoopHumanEval",
    "dpomdp": "dpomdp:TextDecPOMDP",
    "house_build": "house_build:HouseBuild",
    "math_duo": "math_duo:MathDuo",
    "open_spiel": "open_spiel:OpenSpiel",
    "pettingzoo": "pettingzoo:PettingZoo",
    "plan_path": "plan_path:PlanPath",
    "sokoban": "sokoban:Sokoban",
    "str_build": "str_build:StrBuild",
    "sudoku": "sudoku:Sudoku",
    "tldr": "writing.tldr:TLDR",
}
