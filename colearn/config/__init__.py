"""Run settings: typed classes with every default, YAML loading, building and resolving."""

from .build import build_algorithm, build_program, build_task, build_tracker
from .load import (
    dump_config,
    is_suite,
    load_config,
    load_suite,
    recorded_settings,
    shipped_configs,
)
from .parts import build_part, known_settings, own_code, part_name
from .resolve import bind_agents, resolve
from .resolved_run import ResolvedRun
from .seeds import first_seeds
from .settings import (
    EACH,
    AgentSettings,
    Chosen,
    CompareSettings,
    Config,
    CriticSettings,
    EvaluationSettings,
    GeneratorChoice,
    LearnerChoice,
    LoRASettings,
    ModelSettings,
    Named,
    OptimizerSettings,
    RunSettings,
    SamplingSettings,
    TemperatureAnneal,
    TrainedSampling,
    TrainSettings,
)
from .suite import MetricColumn, SuiteSettings, TaskColumns
from .yaml_text import parse_yaml, read_yaml_file

__all__ = [
    "EACH",
    "AgentSettings",
    "Chosen",
    "CompareSettings",
    "Config",
    "CriticSettings",
    "EvaluationSettings",
    "GeneratorChoice",
    "LearnerChoice",
    "LoRASettings",
    "MetricColumn",
    "ModelSettings",
    "Named",
    "OptimizerSettings",
    "ResolvedRun",
    "RunSettings",
    "SamplingSettings",
    "SuiteSettings",
    "TaskColumns",
    "TemperatureAnneal",
    "TrainSettings",
    "TrainedSampling",
    "bind_agents",
    "build_algorithm",
    "build_part",
    "build_program",
    "build_task",
    "build_tracker",
    "dump_config",
    "first_seeds",
    "is_suite",
    "known_settings",
    "load_config",
    "load_suite",
    "own_code",
    "parse_yaml",
    "part_name",
    "read_yaml_file",
    "recorded_settings",
    "resolve",
    "shipped_configs",
]
