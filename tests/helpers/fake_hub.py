"""A model hub on the loopback, with the parts of its HTTP API that an upload uses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from quiet_server import QuietServer


@dataclass
class FakeHub:
    """`token` may write to `namespace`; files above 1,000 bytes are uploaded by LFS."""

    namespace: str = "us"
    token: str = "hf_of_a_test"
    url: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    collections: dict[str, list[str]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    commits: int = 0


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    server = QuietServer(type("Handler", (_Handler,), {"hub": hub}))
    hub.url = server.url
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def log_message(self, *arguments: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if listed := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/main", path):
            files = self.hub.repositories[listed[1]]
            rows = [
                {"type": "file", "oid": "0", "path": p, "size": len(c)} for p, c in files.items()
            ]
            return self._answer(200, rows)
        if "/api/models/" in path and not any(name in path for name in self.hub.repositories):
            return self._answer(404, {"error": "Repository not found"})
        if known := re.fullmatch(r"/api/models/([^/]+/[^/]+?)(?:/revision/main)?", path):
            files = self.hub.repositories[known[1]]
            siblings = [{"rfilename": p} for p in files]
            return self._answer(200, {"id": known[1], "sha": "0" * 40, "siblings": siblings})
        if shown := re.fullmatch(r"/api/collections/(.+)", path):
            return self._answer(200, self._collection(shown[1]))
        return self._answer(404, {"error": f"no GET {path}"})

    def do_PUT(self) -> None:
        content = self._body()
        oid = self.path.rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == oid
        self.hub.blobs[oid] = content
        self._answer(200, {})

    def do_POST(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        if self.headers.get("authorization") != f"Bearer {self.hub.token}":
            return self._answer(401, {"error": "Invalid username or password."})
        if path == "/api/validate-yaml":
            return self._answer(200, {"warnings": [], "errors": []})
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if asked := re.fullmatch(r"/api/models/(.+)/preupload/main", path):
            return self._modes(asked[1], json.loads(body))
        if sent := re.fullmatch(r"/(.+)\.git/info/lfs/objects/batch", path):
            return self._places(sent[1], json.loads(body))
        if committed := re.fullmatch(r"/api/models/(.+)/commit/main", path):
            return self._commit(committed[1], body)
        if path == "/api/collections":
            return self._collect(json.loads(body))
        if added := re.fullmatch(r"/api/collections/(.+)/items", path):
            return self._add(added[1], json.loads(body)["item"])
        return self._answer(404, {"error": f"no POST {path}"})

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        if asked["organization"] != self.hub.namespace:
            return self._answer(403, {"error": f"You have no write access to {name}"})
        url = {"url": f"{self.hub.url}/{name}", "name": name}
        if name in self.hub.repositories:
            return self._answer(409, {"error": "You already created this model repo", **url})
        self.hub.repositories[name] = {".gitattributes": b""}
        self.hub.private[name] = asked.get("visibility") == "private" or asked.get("private", False)
        return self._answer(200, url)

    def _modes(self, repository: str, asked: dict[str, Any]) -> None:
        assert repository in self.hub.repositories
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["size"] > 1000 else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for file in asked["files"]
        ]
        self._answer(200, {"files": files})

    def _places(self, repository: str, asked: dict[str, Any]) -> None:
        objects = [
            {**file, "actions": {"upload": {"href": f"{self.hub.url}/lfs/{file['oid']}"}}}
            for file in asked["objects"]
        ]
        self._answer(200, {"transfer": "basic", "objects": objects})

    def _commit(self, repository: str, body: bytes) -> None:
        files = self.hub.repositories[repository]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            match line["key"]:
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.hub.blobs[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        self.hub.commits += 1
        self._answer(200, {"commitUrl": f"{self.hub.url}/{repository}/commit/0", "commitOid": "0"})

    def _collect(self, asked: dict[str, Any]) -> None:
        slug = f"{asked['namespace']}/{asked['title']}-0"
        assert len(asked.get("description", "")) <= 150
        known = slug in self.hub.collections
        self.hub.collections.setdefault(slug, [])
        self._answer(409 if known else 200, self._collection(slug))

    def _add(self, slug: str, item: dict[str, str]) -> None:
        assert item["type"] == "model" and item["id"] in self.hub.repositories
        known = item["id"] in self.hub.collections[slug]
        if not known:
            self.hub.collections[slug].append(item["id"])
        self._answer(409 if known else 200, self._collection(slug))

    def _collection(self, slug: str) -> dict[str, Any]:
        return {
            "slug": slug,
            "title": slug,
            "owner": {"name": self.hub.namespace},
            "items": [],
            "lastUpdated": "2026-01-01T00:00:00.000Z",
            "position": 0,
            "private": False,
            "theme": "blue",
            "upvotes": 0,
        }

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, status: int, told: Any) -> None:
        text = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
