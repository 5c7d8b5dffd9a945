"""Settings of a run: typed classes with every default, reading YAML, building what they name."""

from .build import (
    bind_agents,
    build_algorithm,
    build_program,
    build_task,
    check_paces,
    untrained_config,
)
from .load import dump_config, is_suite, load_config, load_suite, shipped_configs
from .parts import build_part, known_settings, part_name
from .settings import (
    EACH,
    AgentSettings,
    CompareSettings,
    Config,
    CriticSettings,
    EvaluationSettings,
    LoRASettings,
    ModelSettings,
    Named,
    OptimizerSettings,
    RunSettings,
    SamplingSettings,
    TrainSettings,
)
from .suite import MetricColumn, SuiteSettings, TaskColumns

__all__ = [
    "EACH",
    "AgentSettings",
    "CompareSettings",
    "Config",
    "CriticSettings",
    "EvaluationSettings",
    "LoRASettings",
    "MetricColumn",
    "ModelSettings",
    "Named",
    "OptimizerSettings",
    "RunSettings",
    "SamplingSettings",
    "SuiteSettings",
    "TaskColumns",
    "TrainSettings",
    "bind_agents",
    "build_algorithm",
    "build_part",
    "build_program",
    "build_task",
    "check_paces",
    "dump_config",
    "is_suite",
    "known_settings",
    "load_config",
    "load_suite",
    "part_name",
    "shipped_configs",
    "untrained_config",
]
