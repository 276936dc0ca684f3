"""The wheel that `make wheel` builds: it is complete, and runs where neither Rust nor the repository is.

Marked `soak`: it compiles the core and downloads the dependencies.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.pty.terminal import Terminal

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "engine", "agents", "themes")


def run(*command, **options):
    finished = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    run(maturin, "build", "--release", "--locked", "--out", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The environment of a machine with the wheel: programs, variables and folders."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", folder / "venv")
    programs = folder / "venv" / "bin"
    run(programs / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    variables = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": os.environ["HOME"],  # with the cache of the demo model
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "PRAVAHA_DATA_DIR": str(folder / "data"),
        "PRAVAHA_CONFIG_DIR": str(folder / "config"),
        "PRAVAHA_SWAP_BYTES": "0",
    }
    assert shutil.which("cargo", path=variables["PATH"]) is None
    return programs / "pravaha", variables, folder


def test_the_wheel_has_all_files_of_the_packages_and_no_others(wheel):
    tracked = set(run("git", "ls-files", *PACKAGES, cwd=ROOT).split())
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    (metadata,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    assert "cp311-abi3" in wheel.name
    assert f"{metadata}/licenses/LICENSE" in names
    described = {name for name in names if name.startswith(f"{metadata}/")}
    assert names - described == tracked | {"engine/_core.abi3.so"}


def test_the_installed_command_answers(installed, demo_model):
    pravaha, environ, folder = installed
    code = "import app, engine._core; print(app.__file__, engine._core.__file__)"
    origins = run(pravaha.with_name("python"), "-c", code, env=environ, cwd=folder).split()
    assert all(origin.startswith(str(folder)) for origin in origins)
    assert "--schema" in run(pravaha, "run", "--help", env=environ, cwd=folder)
    question = "What is the capital of France?"
    options = ("--model", demo_model, "--temperature", "0", "--max-tokens", "16")
    assert "Paris" in run(pravaha, "run", *options, question, env=environ, cwd=folder)
    # A schema is compiled by a program of its own, and themes and style sheets are read from files.
    schema = folder / "schema.json"
    schema.write_text('{"enum": ["Paris"]}')
    assert "Paris" in run(
        pravaha, "run", *options, "--schema", schema, question, env=environ, cwd=folder
    )


def test_the_installed_screen_opens(installed, demo_model):
    pravaha, environ, _ = installed
    terminal = Terminal([str(pravaha), "--model", str(demo_model), "--theme", "neel"], environ)
    try:
        assert "There is no theme" not in terminal.wait_for("● ready", "Ask anything")
        terminal.type("\x11")
        assert terminal.exit_status() == 0
    finally:
        terminal.kill()
