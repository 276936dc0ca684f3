# /// script
# requires-python = ">=3.11"
# dependencies = ["openai-codex-cli-bin==0.163.0"]
# ///
"""Codex itself against a server: `codex.py URL [MODEL]`.

It answers, then writes a file and runs it, with the instructions and tools that `GET /v1/models` tells it.
The last check is for models that call tools well: whether the model is able to is another question than
whether the server is. Prints a line for each check; the exit status is 1 if one failed.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import codex_cli_bin

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
    """Run the checks; the number of those that failed."""
    text = catalog()
    model = sys.argv[2] if len(sys.argv) > 2 else json.loads(text)["models"][0]["slug"]
    failed = 0
    with tempfile.TemporaryDirectory() as base:
        home, folder = Path(base, "home"), Path(base, "work")
        home.mkdir()
        folder.mkdir()
        (home / "models.json").write_bytes(text)
        for websockets in ("true", "false"):
            config = CONFIG.format(
                model=model, url=URL, catalog=home / "models.json", websockets=websockets
            )
            (home / "config.toml").write_text(config)
            said = codex(home, folder, "Answer with the word READY and call no tool.")
            known = "metadata" not in said.stderr
            over = "WebSocket" if websockets == "true" else "HTTP"
            for name, passed in {
                f"answers over {over}": said.returncode == 0 and bool(said.stdout.strip()),
                "knows the model": known,
            }.items():
                print(f"{'ok     ' if passed else 'FAILED '} {name}")
                failed += not passed
        done = codex(home, folder, "Write hello.py, which prints hello, and run it.")
        passed = done.returncode == 0 and (folder / "hello.py").exists()
        print(f"{'ok     ' if passed else 'FAILED '} writes a file")
        failed += not passed
        if failed:
            print(said.stdout, said.stderr, done.stdout, done.stderr, sep="\n")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
