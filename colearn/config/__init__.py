"""Run settings: typed classes with all defaults, and functions that load YAML, build objects and
resolve configs."""

from .agent_settings import AgentSettings, SamplingSettings, TemperatureAnneal, TrainedSampling
from .build import build_algorithm, build_program, build_task, build_tracker
from .critic_baseline import with_critic_baseline
from .load import (
    dump_config,
    is_suite,
    load_config,
    load_suite,
    recorded_settings,
    shipped_configs,
)
from .network_settings import (
    CriticSettings,
    LoRASettings,
    ModelSettings,
    OptimizerSettings,
)
from .parts import build_part, known_settings, part_name
from .resolve import bind_agents, resolve
from .resolved_run import ResolvedRun
from .settings import (
    CompareSettings,
    Config,
    EvaluationSettings,
    GeneratorChoice,
    LearnerChoice,
    RunSettings,
    TrainSettings,
    first_seeds,
)
from .strict_section import EACH, Named
from .suite import SuiteSettings

__all__ = [
    "EACH",
    "AgentSettings",
    "CompareSettings",
    "Config",
    "CriticSettings",
    "EvaluationSettings",
    "GeneratorChoice",
    "LearnerChoice",
    "LoRASettings",
    "ModelSettings",
    "Named",
    "OptimizerSettings",
    "ResolvedRun",
    "RunSettings",
    "SamplingSettings",
    "SuiteSettings",
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
    "part_name",
    "recorded_settings",
    "resolve",
    "shipped_configs",
    "with_critic_baseline",
]
