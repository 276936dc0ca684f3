"""Runs every client of this folder against a server and prints a table of what passed.

    python clients/run.py --model MODEL [--only NAME …]      # starts a server with a model
    python clients/run.py --url http://127.0.0.1:8000        # asks one that runs

Each script names its packages in its head (PEP 723) and gets an environment of its own with them, which is
kept for the next time. One of `EXPECTED_FAILURES` counts as failed once it passes: take it off the list.
"""

import argparse
import re
import subprocess
import sys
import time
import tomllib
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PORT = 8713
LOAD_S = 180
HEAD = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)
EXPECTED_FAILURES = {
    "claude_code": "a model of 1.5B goes on calling tools until its turns are used up",
    "codex": "a model of 1.5B does not finish its task of writing and running a file",
}
"""Only ever gets shorter."""


def packages_of(script: Path) -> list[str]:
    """The packages that a script names in its head; empty for a module that is none."""
    found = HEAD.search(script.read_text())
    if found is None:
        return []
    lines = [line.removeprefix("#").removeprefix(" ") for line in found[1].splitlines()]
    packages: list[str] = tomllib.loads("\n".join(lines))["dependencies"]
    return packages


def environment(script: Path, packages: list[str], folder: Path) -> Path:
    """The interpreter of a script's environment, which is made if there is none with these packages."""
    where = folder / script.stem
    python, installed = where / "bin" / "python", where / "packages.txt"
    wanted = "\n".join(packages)
    if not installed.exists() or installed.read_text() != wanted:
        venv.create(where, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        installed.write_text(wanted)
    return python


@contextmanager
def server(model: str) -> Iterator[str]:
    """A server with a model, on a port of this machine."""
    pravaha = Path(sys.executable).parent / "pravaha"
    process = subprocess.Popen(
        [pravaha, "--serve", "--port", str(PORT), "--model", model],
        stdout=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{PORT}"
    try:
        end = time.monotonic() + LOAD_S
        while not is_ready(url):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"The server did not load {model}.")
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


def checked(script: Path, url: str, folder: Path, timeout_s: float) -> tuple[str, str, float]:
    """Result, last line and seconds of one script."""
    began = time.monotonic()
    try:
        python = environment(script, packages_of(script), folder)
        done = subprocess.run(
            [python, script, url],
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
    passed, expected = done.returncode == 0, script.stem in EXPECTED_FAILURES
    last = lines[-1].strip()[:100] if lines else ""
    if passed:
        result = "FAILED: it passes now, take it off the list" if expected else "passed"
    else:
        result = "expected failure" if expected else "failed"
    return result, last, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a model for the server that is started")
    parser.add_argument("--url", help="of a server that runs")
    parser.add_argument("--only", nargs="*", help="names of scripts, without .py")
    parser.add_argument("--environments", type=Path, default=HERE / ".environments")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each script")
    given = parser.parse_args()
    scripts = [one for one in sorted(HERE.glob("*.py")) if packages_of(one)]
    if given.only:
        scripts = [one for one in scripts if one.stem in given.only]
    rows = []

    def run_all(url: str) -> None:
        for script in scripts:
            print(f"== {script.stem}", flush=True)
            rows.append((script, *checked(script, url, given.environments, given.timeout)))

    if given.url:
        run_all(given.url)
    else:
        with server(given.model or "smollm2") as url:
            run_all(url)
    print("\n| script | packages | result | last line | s |\n|---|---|---|---|---|")
    for script, result, last, seconds in rows:
        packages = ", ".join(packages_of(script))
        print(f"| `{script.stem}` | {packages} | {result} | {last} | {seconds:.0f} |")
    return int(any(result.lower().startswith("failed") for _, result, *_ in rows))


if __name__ == "__main__":
    sys.exit(main())
