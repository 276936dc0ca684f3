"""A local Python package index with one wheel, which can stop in the middle of sending it."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from engine.models.demo import PackagedFile, PackagedModel

CHUNK = 64 << 10


def packaged(payload: bytes, *, sha256: str | None = None) -> PackagedModel:
    """The description of a model in the package `tiny-model`."""
    return PackagedModel(
        name="tiny",
        requirement="tiny-model==1.0",
        files=(packaged_file("tiny_model/tiny.gguf", payload, sha256=sha256),),
    )


def packaged_file(member: str, payload: bytes, *, sha256: str | None = None) -> PackagedFile:
    """The description of one of its files."""
    return PackagedFile(member, sha256 or hashlib.sha256(payload).hexdigest(), len(payload))


def wheel(files: dict[str, bytes]) -> bytes:
    """A wheel of `tiny-model` 1.0 that holds the files."""
    info = "tiny_model-1.0.dist-info"
    texts = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        for name, text in texts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


class PackageIndex:
    """The running index.

    Attributes:
        url: value of `PIP_INDEX_URL`.
        halfway: set when half of the wheel was sent.
        resume: cleared before a fetch, it makes the index wait there.
    """

    def __init__(self, wheel_bytes: bytes) -> None:
        self.wheel_bytes = wheel_bytes
        self.halfway = threading.Event()
        self.resume = threading.Event()
        self.resume.set()
        self.url = ""


@contextmanager
def serve_package(wheel_bytes: bytes) -> Iterator[PackageIndex]:
    """Serve the wheel on a loopback port."""
    index = PackageIndex(wheel_bytes)
    name = "tiny_model-1.0-py3-none-any.whl"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/simple/tiny-model/":
                page = f'<!DOCTYPE html><html><body><a href="/{name}">{name}</a></body></html>'
                self._send(page.encode(), "text/html")
            elif self.path == f"/{name}":
                self._send(index.wheel_bytes, "application/octet-stream")
            else:
                self.send_error(404)

        def _send(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            half = len(body) // 2
            try:
                self.wfile.write(body[:half])
                if kind != "text/html":
                    index.halfway.set()
                    index.resume.wait(60)
                self.wfile.write(body[half:])
            except OSError:
                pass  # the client was killed, as tests do

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple/"
    try:
        yield index
    finally:
        index.resume.set()
        server.shutdown()
        thread.join()
        server.server_close()
