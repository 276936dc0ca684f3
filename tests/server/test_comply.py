"""llm-comply's checks of the chat API, against a server process."""

import json
import subprocess
import sys
from pathlib import Path

from tests.server.process import toy_process
from tests.server.toy_tokenizer import IM_END

EXPECTED_FAILURES = {
    "chat-tool-calling": "tools come with structured output",
    "chat-image-input": "images come with the vision path",
}
"""Only ever gets shorter: a check that passes must leave it."""

SKIPPED = {"chat-reasoning-summary": "llm-comply asks it of reasoning models only"}


def comply(url: str) -> dict[str, str]:
    """Status of each check."""
    arguments = ["--format", "openai-chat", "-u", f"{url}/v1", "-k", "sk-1", "-m", "toy", "--json"]
    program = Path(sys.executable).with_name("llm-comply")
    result = subprocess.run([program, *arguments], capture_output=True, text=True)
    return {one["id"]: one["status"] for one in json.loads(result.stdout)["results"]}


def test_the_chat_api_complies():
    with toy_process(engine={"force": {8: IM_END}}, api_key="sk-1") as server:
        statuses = comply(server.url)
    assert len(statuses) == 9
    failed = {check for check, status in statuses.items() if status == "failed"}
    skipped = {check for check, status in statuses.items() if status == "skipped"}
    assert failed == set(EXPECTED_FAILURES)
    assert skipped == set(SKIPPED)
