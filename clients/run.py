"""Runs every client of this folder against a server and prints a table of what passed.

    python clients/run.py --model MODEL [--only NAME …]      # starts a server with a model
    python clients/run.py --url http://127.0.0.1:8000        # asks one that runs

Each script names its Python and its packages in its head (PEP 723) and gets an environment of its own with
them, which is kept for the next time. `servers` in the head's `[tool.pravaha]` says what it is run against:
`model`, the model of the server above (the default), `scripted`, the model of `scripted_model.py`, or both.
What is expected to fail: `expected_failures.py`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODEL_PORT, SCRIPTED_PORT = 8713, 8714
LOAD_S = 180
HEAD = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)
NEWER_PYTHONS = tuple(f"python3.{minor}" for minor in range(12, 15))


@dataclass(frozen=True, slots=True)
class Script:
    """A client's script, and what its head says."""

    path: Path
    packages: tuple[str, ...]
    python: str  # such as ">=3.12"
    servers: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name without the ending."""
        return self.path.stem


def read_script(path: Path) -> Script | None:
    """A script with a head; None for a module without one."""
    found = HEAD.search(path.read_text())
    if found is None:
        return None
    lines = [line.removeprefix("#").removeprefix(" ") for line in found[1].splitlines()]
    head: dict[str, Any] = tomllib.loads("\n".join(lines))
    servers = head.get("tool", {}).get("pravaha", {}).get("servers", ["model"])
    return Script(path, tuple(head["dependencies"]), head["requires-python"], tuple(servers))


def interpreter(wanted: str, own: int = sys.version_info.minor) -> str | None:
    """A Python of this machine that fits; this one, of minor version `own`, if it does."""
    lowest, highest = (re.search(rf"{sign}3\.(\d+)", wanted) for sign in (">=", "<"))

    def fits(minor: int) -> bool:
        return not ((lowest and minor < int(lowest[1])) or (highest and minor >= int(highest[1])))

    if fits(own):
        return sys.executable
    names = [name for name in NEWER_PYTHONS if fits(int(name.rpartition(".")[2]))]
    return next((found for name in names if (found := shutil.which(name))), None)


def environment(script: Script, python: str, folder: Path) -> Path:
    """The interpreter of a script's environment, which is made if there is none with these packages."""
    where = folder / script.name
    own, installed = where / "bin" / "python", where / "packages.txt"
    wanted = "\n".join(script.packages)
    if not installed.exists() or installed.read_text() != wanted:
        subprocess.run([python, "-m", "venv", "--clear", where], check=True)
        subprocess.run([own, "-m", "pip", "install", "-q", *script.packages], check=True)
        installed.write_text(wanted)
    return own


@contextmanager
def serving(command: list[str | Path], port: int) -> Iterator[str]:
    """A server of this machine, stopped at the end."""
    process = subprocess.Popen(
        command,
        cwd=HERE.parent,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        stdout=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + LOAD_S
        while not is_ready(url):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"The server did not start: {' '.join(map(str, command))}")
            time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait()


def is_ready(url: str) -> bool:
    """Whether the server takes requests."""
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=5):
            return True
    except OSError:
        return False


def checked(script: Script, url: str, folder: Path, timeout_s: float) -> tuple[str, str, float]:
    """Result, last line and seconds of one script."""
    began = time.monotonic()
    python = interpreter(script.python)
    if python is None:
        return "skipped", f"no Python {script.python} on the path", 0.0
    try:
        own = environment(script, python, folder)
        done = subprocess.run(
            [own, script.path, url],
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return "failed", f"no end after {timeout_s:.0f} s", time.monotonic() - began
    except subprocess.CalledProcessError:
        return "failed", "its packages could not be installed", time.monotonic() - began
    print(done.stdout)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    last = lines[-1].strip()[:100] if lines else ""
    return "passed" if done.returncode == 0 else "failed", last, time.monotonic() - began


def main() -> int:
    scripts = [one for path in sorted(HERE.glob("*.py")) if (one := read_script(path))]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="a model for the server that is started")
    parser.add_argument("--url", help="of a server that runs")
    names = [one.name for one in scripts]
    parser.add_argument(
        "--only", nargs="*", choices=names, metavar="NAME", help="names of scripts, without .py"
    )
    parser.add_argument("--environments", type=Path, default=HERE / ".environments")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each script")
    given = parser.parse_args()
    if given.only:
        scripts = [one for one in scripts if one.name in given.only]
    rows = []

    def run_all(server: str, url: str) -> None:
        for script in scripts:
            if server in script.servers:
                print(f"== {script.name}, {server}", flush=True)
                rows.append(
                    (script, server, *checked(script, url, given.environments, given.timeout))
                )

    if any("scripted" in one.servers for one in scripts):
        command = [sys.executable, HERE / "scripted_model.py", str(SCRIPTED_PORT)]
        with serving(command, SCRIPTED_PORT) as url:
            run_all("scripted", url)
    if given.url:
        run_all("model", given.url)
    elif any("model" in one.servers for one in scripts):
        pravaha = Path(sys.executable).parent / "pravaha"
        options = ["--serve", "--port", str(MODEL_PORT), "--model", given.model]
        with serving([pravaha, *options], MODEL_PORT) as url:
            run_all("model", url)
    print("\n| script | server | packages | result | last line | s |\n|---|---|---|---|---|---|")
    for script, server, result, last, seconds in rows:
        packages = ", ".join(script.packages)
        print(f"| `{script.name}` | {server} | {packages} | {result} | {last} | {seconds:.0f} |")
    return int(any(row[2] == "failed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
