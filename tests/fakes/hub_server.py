"""A loopback stand-in for a Hugging Face hub: model info and file downloads, over real HTTP."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer:
    """The running hub.

    Attributes:
        url: value of `HF_ENDPOINT`.
        files: contents of the only repository; may be changed between requests.
        claimed_sha256: digests published instead of the true ones, by file name.
        cut_at: bytes after which downloads of a file break off, by its name.
        requested: every requested path.
        ranges: the `Range` of every request that had one.
        revisions: commits by the names of branches and tags beside `main`.
        found: repositories that a search returns.
        searched: the words of every search.
        held: cleared, file downloads wait after `held_at` bytes.
    """

    def __init__(self, repository: str, files: dict[str, bytes]) -> None:
        self.repository = repository
        self.files = files
        self.claimed_sha256: dict[str, str] = {}
        self.cut_at: dict[str, int] = {}
        self.requested: list[str] = []
        self.ranges: list[str] = []
        self.revisions: dict[str, str] = {}
        self.found: list[dict[str, object]] = []
        self.searched: list[str] = []
        self.held = threading.Event()
        self.held.set()
        self.held_at = 0
        self.url = ""

    def info(self) -> dict[str, object]:
        """The answer to `/api/models/<repository>?blobs=true`."""
        siblings = []
        for name, data in self.files.items():
            sibling: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": "0" * 40}
            if name.endswith((".gguf", ".safetensors")):
                digest = self.claimed_sha256.get(name, hashlib.sha256(data).hexdigest())
                sibling["lfs"] = {"sha256": digest, "size": len(data), "pointerSize": 130}
            siblings.append(sibling)
        return {"id": self.repository, "sha": COMMIT, "siblings": siblings}


@contextmanager
def serve_hub(repository: str, files: dict[str, bytes]) -> Iterator[HubServer]:
    """Serve one repository on a loopback port."""
    hub = HubServer(repository, files)
    resolve = f"/{repository}/resolve/{COMMIT}/"

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requested.append(path)
            name = path.removeprefix(resolve)
            info, _, revision = path.partition("/revision/")
            if path == "/api/models":
                query = parse_qs(urlsplit(self.path).query)
                hub.searched.append(query["search"][0])
                body = json.dumps(hub.found).encode()
                headers = {"Content-Type": "application/json"}
            elif info == f"/api/models/{repository}" and (
                not revision or revision in hub.revisions
            ):
                body, headers = (
                    json.dumps(hub.info()).encode(),
                    {"Content-Type": "application/json"},
                )
            elif path.startswith(resolve) and name in hub.files:
                body = hub.files[name]
                etag = hashlib.sha256(body).hexdigest()
                headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}
                if with_body:
                    self._send_file(name, body, headers)
                    return
            else:
                self.send_response(404)
                missing = "RevisionNotFound" if revision else "RepoNotFound"
                self.send_header("X-Error-Code", missing)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def _send_file(self, name: str, body: bytes, headers: dict[str, str]) -> None:
            """Send the file or the rest of it; not beyond the byte where it breaks off."""
            start = 0
            if "Range" in self.headers:
                hub.ranges.append(self.headers["Range"])
                start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self.send_response(206 if start else 200)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            end = hub.cut_at.get(name, len(body))
            if not hub.held.is_set():
                middle = min(max(start, hub.held_at), end)
                self.wfile.write(body[start:middle])
                self.wfile.flush()
                hub.held.wait(30)
                start = middle
            self.wfile.write(body[start:end])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
