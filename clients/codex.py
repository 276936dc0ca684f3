# /// script
# requires-python = ">=3.11"
# dependencies = ["openai-codex-cli-bin==0.163.0"]
# [tool.pravaha]
# servers = ["model", "scripted"]
# ///
"""Codex itself against a server: `codex.py URL [MODEL]`.

It answers, with the instructions and tools that `GET /v1/models` tells it. With the scripted model it also
writes a module by `apply_patch` and its test by the shell, and runs the test. Its commands are executed as
they come, so a trained model is not given the task.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import codex_cli_bin
from agent_task import MODULE, RUN, TEST, assert_done, call, task, with_answers
from checks import Checks

URL = sys.argv[1].rstrip("/")
KEY = os.environ.get("PRAVAHA_API_KEY", "none")
PROGRAM = Path(codex_cli_bin.__file__).parent / "bin" / "codex"
CONFIG = """\
model = "{model}"
model_provider = "pravaha"
model_catalog_json = "{catalog}"
[model_providers.pravaha]
name = "Pravaha"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "PRAVAHA_API_KEY"
supports_websockets = {websockets}
[features]
goals = false
multi_agent = false
"""
ADDED = "".join(f"+{line}\n" for line in MODULE.splitlines())
ANSWERS = (
    call("apply_patch", input=f"*** Begin Patch\n*** Add File: calc.py\n{ADDED}*** End Patch\n"),
    call("exec_command", cmd=f"cat > test_calc.py <<'E'\n{TEST}E\n"),
    call("exec_command", cmd=RUN),
    "The test passes.",
)


def catalog() -> bytes:
    """The server's models in Codex's form."""
    request = urllib.request.Request(f"{URL}/v1/models?client_version=0.163.0")
    request.add_header("authorization", f"Bearer {KEY}")
    with urllib.request.urlopen(request) as answer:
        text: bytes = answer.read()
    return text


def codex(home: Path, folder: Path, task: str) -> "subprocess.CompletedProcess[str]":
    """Let Codex do a task in a folder."""
    options = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return subprocess.run(
        [PROGRAM, *options, task],
        cwd=folder,
        env={**os.environ, "CODEX_HOME": str(home), "PRAVAHA_API_KEY": KEY},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def main() -> int:
    text = catalog()
    model = sys.argv[2] if len(sys.argv) > 2 else json.loads(text)["models"][0]["slug"]
    checks = Checks("openai-codex-cli-bin 0.163.0")
    with tempfile.TemporaryDirectory() as base:
        home, folder = Path(base, "home"), Path(base, "work")
        home.mkdir()
        folder.mkdir()
        (home / "models.json").write_bytes(text)
        greeting = "Answer with the word READY and call no tool."
        if model == "scripted":
            greeting = with_answers(greeting, "READY")
        for websockets, over in (("true", "WebSocket"), ("false", "HTTP")):
            config = CONFIG.format(
                model=model, url=URL, catalog=home / "models.json", websockets=websockets
            )
            (home / "config.toml").write_text(config)
            said = codex(home, folder, greeting)
            print(said.stderr[-2000:])
            with checks.check(f"it answers over {over}"):
                assert said.returncode == 0
                assert said.stdout.strip()
            with checks.check(f"it knows the model over {over}"):
                assert "metadata" not in said.stderr
        if model == "scripted":
            done = codex(home, folder, task(model, *ANSWERS))
            print(done.stderr[-4000:])
            with checks.check("it does the task"):
                assert_done(folder)
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
