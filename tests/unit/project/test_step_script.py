"""`scripts/step.sh`, which runs the steps of the set-up."""

import subprocess
from pathlib import Path

STEP = Path(__file__).resolve().parents[3] / "scripts" / "step.sh"


def run(*command, hint=""):
    return subprocess.run(
        [STEP, "Build things", *command],
        env={"HINT": hint, "PATH": "/usr/bin:/bin"},
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
