"""Settings of a run: typed classes with every default, reading YAML, building what they name."""

from .build import bind_agents, build_algorithm, build_task
from .load import dump_config, load_config, shipped_configs
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

__all__ = [
    "EACH",
    "AgentSettings",
    "CompareSettings",
    "Config",
    "CriticSettings",
    "EvaluationSettings",
    "LoRASettings",
    "ModelSettings",
    "Named",
    "OptimizerSettings",
    "RunSettings",
    "SamplingSettings",
    "TrainSettings",
    "bind_agents",
    "build_algorithm",
    "build_task",
    "dump_config",
    "load_config",
    "shipped_configs",
]
