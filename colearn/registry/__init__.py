"""Registry that maps the names used in configs to parts, tasks and programs."""

from .lookup import (
    KINDS,
    Kind,
    KindOfPart,
    algorithm_class,
    check_name,
    installed,
    instance,
    load,
    name_of,
    names,
    task_class,
)
from .own_code import check_function, is_target, own_function, without_own_code

__all__ = [
    "KINDS",
    "Kind",
    "KindOfPart",
    "algorithm_class",
    "check_function",
    "check_name",
    "installed",
    "instance",
    "is_target",
    "load",
    "name_of",
    "names",
    "own_function",
    "task_class",
    "without_own_code",
]
