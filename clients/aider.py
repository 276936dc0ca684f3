# /// script
# requires-python = ">=3.11,<3.13"
# dependencies = ["aider-chat==0.86.2"]
# ///
"""aider against a server: `python clients/aider.py http://127.0.0.1:8000`. It mends a function in a file."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_task import served_model
from checks import Checks

WRONG = "def add(a, b):\n    return a - b\n"
OPTIONS = (
    "--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--yes-always", "--no-git",
    "--edit-format", "whole",
)  # fmt: skip


def main(url: str) -> int:
    checks = Checks("aider 0.86.2")
    model = served_model(url)
    with TemporaryDirectory() as folder, checks.check("a function is mended in its file"):
        file = Path(folder, "calc.py")
        file.write_text(WRONG)
        own = {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "none", "HOME": folder}
        task = "Fix add: it must return the sum."
        aider = Path(sys.executable).parent / "aider"
        command = [aider, "--model", f"openai/{model}", *OPTIONS, "--message", task, "calc.py"]
        subprocess.run(command, cwd=folder, env={**os.environ, **own}, check=True, timeout=600)
        assert "a + b" in file.read_text()
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
