"""Errors that a server reports as JSON. Their status may be in the body of an answer with status
200, if the error occurred after the server had accepted the request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_LASTING = frozenset(
    {
        *("invalid_request_error", "authentication_error", "permission_error", "not_found_error"),
        *("insufficient_quota", "billing_error", "request_too_large", "context_length_exceeded"),
        *("invalid_api_key", "model_not_found", "content_filter", "content_policy_violation"),
    }
)
"""Types and codes of errors without a status that another attempt would not avoid."""
_DETAILS = ("raw", "reasons")
"""OpenRouter's fields for the text of the provider, below `metadata`."""


@dataclass(frozen=True, slots=True)
class ReportedError:
    """An error in the form of OpenAI, OpenRouter, vLLM or Anthropic."""

    message: str
    """The server's text; empty if there is none."""
    code: str | None
    """The code of the OpenAI format, such as `session_conflict`."""
    status: int
    passing: bool
    """Whether another attempt may avoid the error."""


def error_in(answer: Any) -> Any:
    """Returns the error in an answer's JSON; None if the answer reports none."""
    if not isinstance(answer, Mapping):
        return None
    return answer if answer.get("object") == "error" else answer.get("error") or None


def read_error(error: Any, status: int) -> ReportedError:
    """Reads what `error_in` found in an answer with this status. An error without a status of its
    own in an answer with status 2xx counts as passing, unless its type or code is known to last."""
    fields = error if isinstance(error, Mapping) else {"message": error}
    code, kind = fields.get("code"), fields.get("type")
    named = _LASTING & {name for name in (code, kind) if isinstance(name, str)}
    message = _message(fields)
    if 200 <= status < 300:
        statuses = (_status(fields.get(name)) for name in ("code", "status", "status_code"))
        own = next(filter(None, statuses), None)
        status = own or (400 if named else 500)
        message = message if own is None else f"{own}: {message}"
    return ReportedError(
        message=message,
        code=code if isinstance(code, str) else None,
        status=status,
        passing=status in (408, 429) or status >= 500 or code == "session_busy",
    )


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if type(value) is int and 400 <= value < 600 else None


def _message(fields: Mapping[str, Any]) -> str:
    metadata = fields.get("metadata")
    details = [metadata.get(name) for name in _DETAILS] if isinstance(metadata, Mapping) else []
    texts = [fields.get("message") or fields.get("type") or fields.get("code"), *details]
    return "; ".join(as_text(text) for text in texts if text)


def as_text(value: Any) -> str:
    """Returns a text as it is, and another value as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # nested lists
        return ""


def retry_after(value: str | None) -> float | None:
    """Returns the seconds to wait, from a number or a date; None for any other value."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
