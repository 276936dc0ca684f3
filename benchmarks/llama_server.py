"""llama.cpp's server as a process beside a benchmark."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

START_S = 600.0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def llama_server(binary: Path, model: Path, *options: str) -> Iterator[str]:
    """The address of the server while entered; it has loaded the model.

    Args:
        binary: `llama-server`.
        model: a GGUF file.
        options: of the server, but for its port.

    Raises:
        RuntimeError: the server has ended, or does not answer.
    """
    port = free_port()
    command = [str(binary), "-m", str(model), "--port", str(port), "--no-webui", *options]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_ready(url, process)
            yield url
        finally:
            process.terminate()


def _wait_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            if httpx.get(f"{url}/health", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise RuntimeError("llama.cpp's server has ended, or does not answer")
