"""Pictures of a state: the data that a task provides (`Picture`) and their SVG."""

from .picture import Cell, Mark, Panel, Picture

__all__ = ["Cell", "Mark", "Panel", "Picture"]
