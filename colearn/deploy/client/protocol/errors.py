"""Reports errors to clients, in the format of OpenAI and Anthropic, and to the operator, without
the content of requests."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}

_MESSAGE = re.compile(r"\bmessage (\d+)\b")


class ServeError(Exception):
    """Raised when the server refuses a request; holds the HTTP status, the cause, the remedy and
    the name of the invalid field, if any."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.code, self.param = code, param
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Returns the error as OpenAI's JSON, with the `type` by which Anthropic's clients know an
        error."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {
            "type": "error",
            "error": {
                "message": self.message,
                "type": _TYPES.get(self.status, kind),
                "param": self.param,
                "code": self.code,
            },
        }

    def renamed(self, names: Mapping[str, str], places: Sequence[str]) -> ServeError:
        """Returns the error with the field names of the protocol from which a request was
        translated. `places` are the fields that hold the request's messages."""
        if not places:
            return self
        field, _, below = (self.param or "").partition(".")
        number = below.partition(".")[0]
        param = ".".join(filter(None, (names.get(field, field), below))) or None
        if field == "messages" and number.isdecimal():
            param = places[int(number)]
        message = _MESSAGE.sub(lambda found: f"'{places[int(found[1])]}'", self.message)
        message = message.replace(f"'{self.param}'", f"'{param}'")
        return ServeError(self.status, message, code=self.code, param=param, headers=self.headers)


def report(error: BaseException) -> None:
    """Prints an error's type and traceback to stderr, but not the error's text, which may quote a
    request."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    print(f"internal error: {type(error).__name__}\n{frames}", file=sys.stderr, flush=True)
