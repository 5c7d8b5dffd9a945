"""How text becomes an agent's private, append-only history of token ids."""

from .chat import ChatFormat

__all__ = ["ChatFormat"]
