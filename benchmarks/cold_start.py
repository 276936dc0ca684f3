"""Cold start time and idle memory of the application, with the demo model in the page cache.

    python benchmarks/cold_start.py [--runs 5] [--json]

Prints medians and maxima over new processes:

* *first frame*: from exec to the application's name on a pseudo-terminal of 120×36;
* *first token*: from exec to the first byte written by `pravaha run "Hi"`;
* *idle memory*: resident memory of the terminal application, ten seconds after the first frame.
"""

import argparse
import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from benchmarks.machine import with_origin

PRAVAHA = str(Path(sys.executable).with_name("pravaha"))
SIZE = (36, 120)
FRAME_MARK = "Pravāha".encode()
SETTLE_S = 10.0
LIMIT_S = 60.0


def read_until(fd: int, mark: bytes, deadline: float) -> bytes:
    """Read the terminal's output until `mark` appears, and return it."""
    seen = b""
    while mark not in seen:
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"{mark!r} did not appear: {seen[-500:]!r}")
        seen += os.read(fd, 65536)
    return seen


def drain(fd: int, seconds: float) -> int:
    """Read the terminal's output for `seconds`; returns the number of bytes."""
    end, count = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            try:
                count += len(os.read(fd, 65536))
            except OSError:  # EIO: the program has closed its side
                break
    return count


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no VmRSS for {pid}")


def first_frame(environ: dict[str, str], *, settle: bool) -> tuple[float, int]:
    """Seconds to the first frame, and resident bytes `SETTLE_S` later (0 without `settle`)."""
    start = time.monotonic()
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(PRAVAHA, [PRAVAHA], environ)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    try:
        read_until(fd, FRAME_MARK, start + LIMIT_S)
        seconds, resident = time.monotonic() - start, 0
        if settle:
            drain(fd, SETTLE_S)
            resident = resident_bytes(pid)
        return seconds, resident
    finally:
        os.kill(pid, signal.SIGTERM)
        drain(fd, 0.5)
        os.waitpid(pid, 0)
        os.close(fd)


def first_token(environ: dict[str, str]) -> float:
    """Seconds from exec to the first byte of an answer."""
    start = time.monotonic()
    command = [PRAVAHA, "run", "--max-tokens", "4", "Hi"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="new processes per measurement")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        environ = {**os.environ, "PRAVAHA_DATA_DIR": data, "TERM": "xterm-256color"}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once
        first_token(environ)  # downloads the model if necessary, and warms the page cache
        frames = [first_frame(environ, settle=False)[0] for _ in range(arguments.runs)]
        tokens = [first_token(environ) for _ in range(arguments.runs)]
        _, resident = first_frame(environ, settle=True)
    figures = {
        "first_frame_s": {"median": statistics.median(frames), "worst": max(frames)},
        "first_token_s": {"median": statistics.median(tokens), "worst": max(tokens)},
        "idle_resident_mb": resident / 1e6,
    }
    if arguments.json:
        print(json.dumps(with_origin(figures), indent=1))
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            print(f"{name}: median {value['median']:.2f}, worst {value['worst']:.2f}")
        else:
            print(f"{name}: {value:.0f}")


if __name__ == "__main__":
    main()
