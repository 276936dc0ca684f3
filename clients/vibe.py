# /// script
# requires-python = ">=3.12"
# dependencies = ["mistral-vibe==3.0.2"]
# [tool.pravaha]
# servers = ["model", "scripted"]
# ///
"""Mistral's vibe against a server: `python clients/vibe.py http://127.0.0.1:8000`.

It writes a module and its test, and runs the test.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_task import MODULE, RUN, TEST, assert_done, call, served_model, task
from checks import Checks
from expected_failures import expected

CONFIG = """\
active_model = "local"
enable_telemetry = false
enable_update_checks = false

[[providers]]
name = "pravaha"
api_base = "{url}/v1"
api_key_env_var = ""
backend = "generic"

[[models]]
name = "{model}"
provider = "pravaha"
alias = "local"
temperature = 0.0
"""
ANSWERS = (
    call("write_file", path="calc.py", content=MODULE),
    call("write_file", path="test_calc.py", content=TEST),
    call("bash", command=RUN),
    "The test passes.",
)
TIMEOUT_S = 800


def main(url: str) -> int:
    model = served_model(url)
    checks = Checks("mistral-vibe 3.0.2", expected_failures=expected("vibe", model))
    with TemporaryDirectory() as base:
        home, folder = Path(base, "home"), Path(base, "work")
        home.mkdir()
        folder.mkdir()
        (home / "config.toml").write_text(CONFIG.format(url=url, model=model))
        vibe = Path(sys.executable).parent / "vibe"
        options = ["--auto-approve", "--trust", "--max-turns", "12"]
        if model != "scripted":  # a small model's commands are not executed
            options += ["--enabled-tools", "write_file", "--enabled-tools", "read_file"]
        with checks.check("it answers"):
            done = subprocess.run(
                [vibe, "-p", task(model, *ANSWERS), *options],
                cwd=folder,
                env={**os.environ, "VIBE_HOME": str(home), "HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                timeout=TIMEOUT_S,
                check=True,
            )
            print(done.stdout)
            assert done.stdout.strip()
        with checks.check("it does the task"):
            assert_done(folder)
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
