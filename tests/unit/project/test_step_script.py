"""`scripts/step.sh`, which runs the steps of the set-up."""

import os
import pty
import subprocess
import threading
from pathlib import Path

import pytest

STEP = Path(__file__).resolve().parents[3] / "scripts" / "step.sh"


ENVIRONMENT = {"PATH": "/usr/bin:/bin", "TICK": "0.02", "REPORT_EVERY": "0"}


def run(*command, hint=""):
    return subprocess.run(
        [STEP, "Build things", *command],
        env={**ENVIRONMENT, "HINT": hint, "REPORT_EVERY": "15"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_step_shows_its_name_and_time_and_hides_its_output():
    done = run("sh", "-c", "echo noise; echo more >&2")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "Build things ..."
    assert "done in" in done.stdout
    assert "noise" not in done.stdout + done.stderr
    assert done.stderr == ""


def test_a_failed_step_shows_the_error_and_the_hint_and_keeps_the_status():
    failed = run("sh", "-c", "echo 'disk is full' >&2; exit 3", hint="Free some space.")
    assert failed.returncode == 3
    assert "disk is full" in failed.stderr
    assert "failed with status 3" in failed.stderr
    assert failed.stderr.rstrip().endswith("Free some space.")


def progress_of(output, tmp_path, stdout, read):
    """What is shown while a command that has written `output` runs: up to the first progress."""
    release = tmp_path / "release"
    os.mkfifo(release)
    command = ["sh", "-c", 'printf "%s\\n" "$0"; cat "$1"', output, release]
    with subprocess.Popen(
        [STEP, "Build things", *command], env=ENVIRONMENT, stdout=stdout, stderr=subprocess.DEVNULL
    ) as step:
        timeout = threading.Timer(30, step.kill)
        timeout.start()
        try:
            shown = b""
            while b", " not in shown and (piece := read(step)):
                shown += piece
        finally:
            timeout.cancel()
            release.write_bytes(b"")
            if step.stdout is not None:
                step.stdout.read()
    assert step.returncode == 0
    return shown.decode()


@pytest.mark.parametrize(
    ("output", "doing"),
    [
        (
            "   Compiling serde v1.0.228\n   Compiling tokenizers v0.22.1",
            "compiling tokenizers, crate 2",
        ),
        ("  Downloading torch-2.13.0-cp311.whl (900 MB)", "downloading torch"),
        ("   Compiling serde v1.0.228\n    Finished `release` profile", "installing"),
    ],
)
def test_a_line_of_a_log_says_what_the_step_does(output, doing, tmp_path):
    shown = progress_of(output, tmp_path, subprocess.PIPE, lambda step: step.stdout.readline())
    assert shown.splitlines()[-1].endswith(f" s, {doing}")


def test_on_a_terminal_one_line_is_rewritten(tmp_path):
    ours, theirs = pty.openpty()
    output = (
        "   Compiling a-crate-with-a-name-that-is-longer-than-a-whole-line-of-a-terminal-is-wide v1"
    )
    try:
        shown = progress_of(output, tmp_path, theirs, lambda step: os.read(ours, 4096))
    finally:
        os.close(ours)
        os.close(theirs)
    assert "\n" not in shown
    last = shown.split("\r\x1b[K")[-1]
    assert last.startswith("Build things ... ")
    assert ", compiling a-crate" in last
    assert len(last) < 80


def test_a_log_is_not_flooded():
    done = run("sh", "-c", "echo '   Compiling serde v1.0.228'; sleep 0.2")
    assert len(done.stdout.splitlines()) == 2
