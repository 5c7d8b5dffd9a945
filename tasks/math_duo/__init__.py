"""Math: reasoners and tool users answer until they agree, or a judge decides (B.1, C.2, Fig. 5)."""

from .task import MathDuo

__all__ = ["MathDuo"]
