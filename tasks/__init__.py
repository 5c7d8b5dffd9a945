"""The shipped tasks, by name. Changing a task's rewards or prompts is a new name or variant."""

NAMES = {
    "str_build": "str_build:StrBuild",
}
