# /// script
# requires-python = ">=3.11"
# dependencies = ["mini-swe-agent==2.4.6"]
# [tool.pravaha]
# servers = ["scripted"]
# ///
"""mini-swe-agent against a server: `python clients/mini_swe_agent.py http://127.0.0.1:8000`.

It writes a module and its test, and runs the test. Its commands are executed as they come, so it is tried
with the scripted model alone: a small trained one writes them at random.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_task import RUN, WRITE_BY_SHELL, assert_done, call, served_model, task
from checks import Checks

ANSWERS = (
    call("bash", command=WRITE_BY_SHELL),
    call("bash", command=RUN),
    call("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
)
TIMEOUT_S = 600


def main(url: str) -> int:
    model = served_model(url)
    checks = Checks("mini-swe-agent 2.4.6")
    with TemporaryDirectory() as base:
        home, folder, record = Path(base, "home"), Path(base, "work"), Path(base, "record.json")
        home.mkdir()
        folder.mkdir()
        settings = (
            "mini.yaml", f"model.model_kwargs.api_base={url}/v1", "model.model_kwargs.api_key=none",
            "model.model_kwargs.temperature=0", "model.model_kwargs.tool_choice=required",
            "model.cost_tracking=ignore_errors", "agent.step_limit=8",
        )  # fmt: skip
        command = [Path(sys.executable).parent / "mini", "--yolo", "--exit-immediately"]
        command += [
            "--model",
            f"openai/{model}",
            "--output",
            record,
            "--task",
            task(model, *ANSWERS),
        ]
        command += [part for one in settings for part in ("-c", one)]
        own = {"HOME": str(home), "MSWEA_GLOBAL_CONFIG_DIR": str(home), "MSWEA_CONFIGURED": "true"}
        with checks.check("it works through the task to an end of its own"):
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                timeout=TIMEOUT_S,
                check=True,
            )
            status = json.loads(record.read_text())["info"]["exit_status"]
            print(done.stdout[-3000:])
            assert status == "Submitted", status
        with checks.check("it does the task"):
            assert_done(folder)
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
