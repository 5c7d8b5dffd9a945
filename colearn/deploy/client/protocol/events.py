"""Server-sent events of streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

DONE = b"data: [DONE]\n\n"
"""The last event of a stream of chat completions."""


def event(content: Mapping[str, Any]) -> bytes:
    """Returns one server-sent event."""
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


def typed_event(content: Mapping[str, Any]) -> bytes:
    """Returns one server-sent event whose name is its content's `type`."""
    return f"event: {content['type']}\n".encode() + event(content)
