"""Server-sent events of OpenAI's streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

DONE = b"data: [DONE]\n\n"
"""The last event of a stream."""


def event(content: Mapping[str, Any]) -> bytes:
    """Returns one server-sent event."""
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()
