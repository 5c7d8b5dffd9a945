"""Pictures of a state: what a task gives (`Picture`), and the SVG that is drawn of it."""

from .picture import Cell, Mark, Panel, Picture

__all__ = ["Cell", "Mark", "Panel", "Picture"]
