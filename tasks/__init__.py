"""The shipped tasks, by name. Changing a task's rewards or prompts is a new name or variant."""

NAMES = {
    "dpomdp": "dpomdp:TextDecPOMDP",
    "str_build": "str_build:StrBuild",
}
