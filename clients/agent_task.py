"""The small task of the agents: write a module and its test, and run the test."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

MODULE = "def add(a, b):\n    return a + b\n"
TEST = """\
from calc import add

assert add(2, 3) == 5
open("result.txt", "w").write("ok")
"""
TASK = (
    "Write calc.py with a function add(a, b). Write test_calc.py, which imports it, asserts that"
    " add(2, 3) is 5 and writes ok to result.txt. Then run python3 test_calc.py."
)
RUN = "python3 test_calc.py"
WRITE_BY_SHELL = f"cat > calc.py <<'E'\n{MODULE}E\ncat > test_calc.py <<'E'\n{TEST}E\n"


def served_model(url: str) -> str:
    """The name of the server's model."""
    request = urllib.request.Request(f"{url}/v1/models")
    request.add_header("authorization", f"Bearer {os.environ.get('PRAVAHA_API_KEY', 'none')}")
    with urllib.request.urlopen(request) as answer:
        name: str = json.load(answer)["data"][0]["id"]
    return name


def task(model: str, *answers: Any) -> str:
    """The task; for the scripted model with the answers that it gives (`scripted_model.py`)."""
    return with_answers(TASK, *answers) if model == "scripted" else TASK


def with_answers(text: str, *answers: Any) -> str:
    """A user's message with the answers of the scripted model: texts, or calls `{"name", "arguments"}`."""
    return f"{text}\n<answers>{json.dumps(answers)}</answers>"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer of the scripted model that calls a tool."""
    return {"name": name, "arguments": arguments}


def assert_done(folder: Path) -> None:
    """Both files are there, the agent has run the test, and it passes."""
    for name in ("calc.py", "test_calc.py", "result.txt"):
        assert (folder / name).exists(), f"no {name}"
    assert (folder / "result.txt").read_text().strip() == "ok"
    check = "import calc; assert calc.add(20, 3) == 23"
    subprocess.run([sys.executable, "-c", check], cwd=folder, check=True)
    subprocess.run([sys.executable, "test_calc.py"], cwd=folder, check=True)
