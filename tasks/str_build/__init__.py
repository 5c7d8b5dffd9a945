"""StrBuild: strings built from blocks of two textures."""

from .task import StrBuild, StringItem

__all__ = ["StrBuild", "StringItem"]
