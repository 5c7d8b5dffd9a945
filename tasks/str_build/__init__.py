"""StrBuild: agents build strings from blocks of different textures."""

from .task import StrBuild, StringItem

__all__ = ["StrBuild", "StringItem"]
