# /// script
# requires-python = ">=3.11"
# dependencies = ["gptme==0.35.1"]
# [tool.pravaha]
# servers = ["scripted"]
# ///
"""gptme against a server: `python clients/gptme_agent.py http://127.0.0.1:8000`.

It writes a module and its test, and runs the test, with its own tools as functions of the API. Its commands
are executed as they come, so it is tried with the scripted model alone.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_task import MODULE, RUN, TEST, assert_done, call, served_model, task
from checks import Checks

ANSWERS = (
    call("save", path="calc.py", content=MODULE),
    call("save", path="test_calc.py", content=TEST),
    call("shell", command=RUN),
    call("complete"),
)


def main(url: str) -> int:
    model = served_model(url)
    checks = Checks("gptme 0.35.1")
    with TemporaryDirectory() as base, checks.check("it does the task"):
        home, folder = Path(base, "home"), Path(base, "work")
        home.mkdir()
        folder.mkdir()
        gptme = Path(sys.executable).parent / "gptme"
        options = ["--model", f"local/{model}", "--tool-format", "tool", "--non-interactive"]
        own = {"HOME": str(home), "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none"}
        subprocess.run(
            [gptme, *options, "--workspace", folder, task(model, *ANSWERS)],
            cwd=folder,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=True,
        )
        assert_done(folder)
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
