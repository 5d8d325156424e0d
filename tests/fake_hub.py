"""A small Hugging Face hub in this process: what the client needs to push and to fetch models.

`fake_hub()` serves it and `use_hub()` points huggingface_hub at it, so that only HTTP is faked.
A repository has one branch, main, and only its newest commit, and tags; any token is good.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NotRequired, TypedDict
from urllib.parse import unquote

import huggingface_hub
import pytest

API = re.compile(r"/api/models/([^/]+/[^/]+)(?:/(\w+)/([^/]+)(?:/(.+))?)?")
FILE = re.compile(r"/([^/]+/[^/]+)/(resolve)/([^/]+)/(.+)")
Files = dict[str, bytes]


class Repo(TypedDict):
    private: bool
    files: Files
    tags: NotRequired[dict[str, Files]]


def commit_of(files: Files) -> tuple[str, dict[str, str]]:
    """The commit that holds these files, and the number that git has for each."""
    blobs = {key: b"blob %d\0" % len(files[key]) + files[key] for key in sorted(files)}
    oids = {key: hashlib.sha1(blob).hexdigest() for key, blob in blobs.items()}
    return hashlib.sha1(json.dumps(oids).encode()).hexdigest(), oids


@dataclass
class FakeHub:
    url: str
    repos: dict[str, Repo] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def answer(self, status: int, body: Any, code: str = "", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name.replace("_", "-"), value)
        if code:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, known = unquote(self.path.partition("?")[0]), "Authorization" in self.headers
        if path == "/api/agent-harnesses":  # the client asks this once in a process
            return self.answer(404, {})
        self.hub.requests.append((self.command, path))
        if path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if path in ("/api/whoami-v2", "/api/repos/create") and not known:
            return self.answer(401, {"error": "Invalid username or password."})
        if path == "/api/whoami-v2":
            return self.answer(200, {"type": "user", "name": "someone", "orgs": []})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'someone'}/{asked['name']}"
            status, private = 409 if name in self.hub.repos else 200, asked.get("visibility")
            self.hub.repos.setdefault(name, {"private": private == "private", "files": {}})
            return self.answer(status, {"name": name, "url": f"{self.hub.url}/{name}"})
        found = API.fullmatch(path) or FILE.fullmatch(path)
        repo = self.hub.repos.get(found[1]) if found else None
        if found is None or repo is None:
            return self.answer(404, {"error": "Repository not found"}, "RepoNotFound")
        if not known and (repo["private"] or self.command == "POST"):
            return self.answer(401, {"error": "Repository not found"}, "RepoNotFound")
        return self.serve(repo, body, *found.groups())

    def serve(
        self, repo: Repo, body: bytes, name: str, what: str | None, revision: str | None, path: str
    ) -> None:
        tags = repo.get("tags", {})
        named = {"main": repo["files"], **tags, **{commit_of(t)[0]: t for t in tags.values()}}
        files = named.get(revision or "main", repo["files"])
        lines = [json.loads(line) for line in body.splitlines()]
        if what == "commit":
            for value in (line["value"] for line in lines if line["key"] == "file"):
                files[value["path"]] = base64.b64decode(value["content"])
            for value in (line["value"] for line in lines if line["key"] == "deletedFile"):
                del files[value["path"]]
        sha, oids = commit_of(files)
        if revision not in (None, sha, *named):
            return self.answer(404, {"error": "Invalid rev id"}, "RevisionNotFound")
        if what == "commit":
            url = f"{self.hub.url}/{name}/commit/{sha}"
            return self.answer(200, {"commitOid": sha, "commitUrl": url})
        if what == "preupload":
            plain = {"uploadMode": "regular", "shouldIgnore": False}
            asked = [item["path"] for item in lines[0]["files"]]
            rows = [{"path": key, "oid": oids.get(key), **plain} for key in asked]
            return self.answer(200, {"files": rows})
        if what == "tree" and path:  # no repository here has folders
            return self.answer(404, {}, "EntryNotFound")
        if what == "tree":
            sizes = {key: {"size": len(files[key]), "oid": oid} for key, oid in oids.items()}
            return self.answer(200, [{"type": "file", "path": k, **v} for k, v in sizes.items()])
        if what != "resolve":
            return self.answer(200, {"id": name, "sha": sha, "private": repo["private"]})
        if path not in files:
            return self.answer(404, {}, "EntryNotFound", X_Repo_Commit=sha)
        return self.answer(200, files[path], ETag=f'"{oids[path]}"', X_Repo_Commit=sha)

    do_GET = do_HEAD = do_POST = handle_request  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """An empty hub, served on a free port until the block ends."""

    class Served(Handler):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        Served.hub = hub = FakeHub(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            huggingface_hub.close_session()  # the next test's client reads its own settings
            server.shutdown()
            thread.join()


def use_hub(monkeypatch: pytest.MonkeyPatch, hub: FakeHub, cache: Path) -> None:
    """Send the client to `hub` with a token and a cache, online whatever conftest says."""
    files = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    for name, value in {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": files,
        "HF_HUB_OFFLINE": False,
        "HF_HUB_CACHE": str(cache),
        "HF_HUB_DISABLE_TELEMETRY": True,
        "HF_HUB_DISABLE_XET": True,  # it would log to a folder in HF_HOME
    }.items():
        monkeypatch.setattr(huggingface_hub.constants, name, value)
    monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", hub.url)  # create_repo() and kin
    for name, value in {
        "HF_TOKEN": "hf_x",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    huggingface_hub.close_session()  # the proxies are read when a client is made
