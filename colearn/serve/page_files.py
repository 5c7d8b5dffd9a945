"""The page and its parts: files of this package, read once."""

from __future__ import annotations

import mimetypes
from importlib.resources import files

from starlette.responses import Response

from colearn.wire.errors import ServeError

INDEX = "index.html"


class PageFiles:
    """A client names a file of the folder or gets 404: no path is ever made of what it sends."""

    def __init__(self) -> None:
        folder = files("colearn.serve") / "page"
        found = [entry for entry in folder.iterdir() if entry.is_file()] if folder.is_dir() else []
        self._files = {entry.name: entry.read_bytes() for entry in found}

    def response(self, name: str) -> Response:
        """Errors: ServeError 404."""
        content = self._files.get(name)
        if content is None:
            raise ServeError(404, "no such page", code="not_found")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {"x-content-type-options": "nosniff", "cache-control": "no-cache"}
        return Response(content, media_type=kind, headers=headers)
