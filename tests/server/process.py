"""A server in a separate process, for tests of signals and exit statuses."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class ServerProcess:
    process: subprocess.Popen
    lines: list[str] = field(default_factory=list)
    url: str = ""

    def read_until(self, word: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if word in line:
                return
        raise AssertionError("the server ended: " + "".join(self.lines))

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def exit_status(self) -> int:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)
        return self.process.wait(30)


@contextmanager
def server_process(arguments: Sequence[str]) -> Iterator[ServerProcess]:
    """Run a command that serves; waits until its model is loaded."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    )
    server = ServerProcess(process)
    try:
        server.read_until("listens on")
        match = re.search(r"http://\S+?(?=/v1)", server.lines[-1])
        assert match is not None
        server.url = match[0]
        server.read_until("KV pool")
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def toy_process(*, engine: dict | None = None, **config):
    """`serve_toy` as a process."""
    options = json.dumps([engine or {}, {"port": 0} | config])
    return server_process([sys.executable, "-m", "tests.server.serve_toy", options])


def pravaha_process(model: Path, *options: str):
    """`pravaha --serve` with a model file, on a free port."""
    program = str(Path(sys.executable).with_name("pravaha"))
    return server_process([program, "--serve", "--port", "0", "--model", str(model), *options])
