# /// script
# requires-python = ">=3.11"
# dependencies = ["claude-agent-sdk==0.2.189"]
# [tool.pravaha]
# servers = ["model", "scripted"]
# ///
"""Claude Code, as `claude-agent-sdk` carries it, against a server: `python claude_code.py http://127.0.0.1:8000`.

It works in an empty directory of its own, with settings of its own. Its first prompt has about 12,000 tokens,
which a small machine reads for a minute or more. With the scripted model it also writes a module and its
test, and runs the test.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from agent_task import MODULE, RUN, TEST, assert_done, call, served_model, task, with_answers
from checks import Checks
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, TextBlock, query
from expected_failures import expected

URL = sys.argv[1].rstrip("/")
TIMEOUT_S = float(os.environ.get("TIMEOUT_S", "900"))
ANSWERS = (
    call("Write", file_path="{folder}/calc.py", content=MODULE),
    call("Write", file_path="{folder}/test_calc.py", content=TEST),
    call("Bash", command=RUN),
    "The test passes.",
)


def environment(home: Path) -> dict[str, str]:
    """What Claude Code needs to talk to this server only."""
    return {
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": URL,
        "ANTHROPIC_AUTH_TOKEN": os.environ.get("PRAVAHA_API_KEY", "none"),
        "ANTHROPIC_MODEL": "pravaha",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "pravaha",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "API_TIMEOUT_MS": str(int(TIMEOUT_S * 1000)),
    }


async def ask(home: Path, prompt: str, *, allow_all: bool) -> tuple[str, ResultMessage]:
    """The texts of the answer, and how the session ended. `allow_all`: it may write and execute."""
    options = ClaudeAgentOptions(
        cwd=home,
        env=environment(home),
        max_turns=len(ANSWERS) + 1,
        permission_mode="acceptEdits" if allow_all else "default",
        allowed_tools=["Write", "Bash"] if allow_all else [],
        setting_sources=[],
        stderr=lambda line: print(f"     {line}") if os.environ.get("TRACE") else None,
    )
    texts: list[str] = []
    results: list[ResultMessage] = []
    async for message in query(prompt=prompt, options=options):
        if os.environ.get("TRACE"):
            print(f"     {message}")
        if isinstance(message, AssistantMessage):
            texts += [one.text for one in message.content if isinstance(one, TextBlock)]
        if isinstance(message, ResultMessage):
            results.append(message)
    return "".join(texts), results[-1]


def answer(home: Path, prompt: str, *, allow_all: bool = False) -> str:
    """The text of a session that ended well."""
    asked = ask(home, prompt, allow_all=allow_all)
    text, result = asyncio.run(asyncio.wait_for(asked, TIMEOUT_S))
    assert not result.is_error, result
    assert text.strip()
    assert "API Error" not in text, text
    return text


def main() -> int:
    model = served_model(URL)
    checks = Checks("claude-agent-sdk 0.2.189", expected_failures=expected("claude_code", model))
    greeting = "Answer with one word: what is the capital of Italy?"
    if model == "scripted":
        greeting = with_answers(greeting, "Rome")
    with tempfile.TemporaryDirectory() as home, checks.check("it answers"):
        print(answer(Path(home), greeting))
    if model == "scripted":
        with tempfile.TemporaryDirectory() as home, checks.check("it does the task"):
            folder = Path(home)
            prompt = task(model, *ANSWERS).replace("{folder}", home)
            print(answer(folder, prompt, allow_all=True))
            assert_done(folder)
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())
