"""Static files of the chat page, loaded once from this package."""

from __future__ import annotations

import mimetypes
from importlib.resources import files

from starlette.responses import Response

from colearn.client.protocol.errors import ServeError

INDEX = "index.html"


class PageFiles:
    """Serves the files of one folder by name; no file path is built from a request."""

    def __init__(self) -> None:
        folder = files("colearn.serve") / "page"
        entries = (
            [entry for entry in folder.iterdir() if entry.is_file()] if folder.is_dir() else []
        )
        self._files = {entry.name: entry.read_bytes() for entry in entries}

    def response(self, name: str) -> Response:
        """Returns a file.

        Errors: ServeError 404.
        """
        content = self._files.get(name)
        if content is None:
            raise ServeError(404, "no such page", code="not_found")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {"x-content-type-options": "nosniff", "cache-control": "no-cache"}
        return Response(content, media_type=kind, headers=headers)
