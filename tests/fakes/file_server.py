"""A loopback web server with files: ranges, versions, redirects, and connections that break off."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """The running server.

    Attributes:
        files: contents by path.
        etag: the version of all files; empty for a server without versions.
        modified: the date of all files, likewise.
        kind: the content type.
        redirects: targets by path.
        status: an answer by path instead of the file.
        cuts: of each next answer with a file, the bytes after which it breaks off; then nothing is cut.
        ranges: whether the server knows ranges.
        sends_length: whether answers say how long they are.
        requests: path and headers of every request.
    """

    files: dict[str, bytes]
    etag: str = '"v1"'
    modified: str = ""
    kind: str = "application/octet-stream"
    redirects: dict[str, str] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    sends_length: bool = True
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""


@contextmanager
def serve_files(files: dict[str, bytes]) -> Iterator[FileServer]:
    """Serve files on a loopback port."""
    state = FileServer(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = self.path.partition("?")[0]
            state.requests.append((self.path, headers))
            if path in state.redirects:
                self._head(302, {"Location": state.redirects[path], "Content-Length": "0"})
            elif path in state.status or path not in state.files:
                self._head(state.status.get(path, 404), {"Content-Length": "0"})
            else:
                self._send(state.files[path], headers)

        def _send(self, body: bytes, headers: dict[str, str]) -> None:
            version = state.etag or state.modified
            given = {"Content-Type": state.kind}
            given |= {"ETag": state.etag} if state.etag else {}
            given |= {"Last-Modified": state.modified} if state.modified else {}
            start, status = 0, 200
            if state.ranges and "range" in headers and headers.get("if-range") == version:
                start, status = int(headers["range"].removeprefix("bytes=").removesuffix("-")), 206
                if start >= len(body):
                    self._head(416, {"Content-Length": "0"})
                    return
                given["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            if state.sends_length:
                given["Content-Length"] = str(len(body) - start)
            self._head(status, given)
            end = start + state.cuts.pop(0) if state.cuts else len(body)
            self.wfile.write(body[start:end])

        def _head(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
