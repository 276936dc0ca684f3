# /// script
# requires-python = ">=3.11"
# dependencies = ["claude-agent-sdk==0.2.189"]
# ///
"""Claude Code, as `claude-agent-sdk` carries it, against a server: `python claude_code.py http://127.0.0.1:8000`.

It works in an empty directory of its own, with settings of its own. Its first prompt has about 12,000 tokens,
which a small machine reads for a minute or more. Prints one line and exits with 1 if there is no answer.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, TextBlock, query

URL = sys.argv[1].rstrip("/")
PROMPT = sys.argv[2] if len(sys.argv) > 2 else "Answer with one word: what is the capital of Italy?"
TIMEOUT_S = float(os.environ.get("TIMEOUT_S", "900"))


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


async def ask(home: Path) -> tuple[str, ResultMessage | None]:
    """The texts of the answer, and how the session ended."""
    options = ClaudeAgentOptions(
        cwd=home,
        env=environment(home),
        max_turns=3,
        permission_mode="bypassPermissions" if os.environ.get("ALLOW_ALL") else "default",
        setting_sources=[],
        stderr=lambda line: print(f"     {line}") if os.environ.get("TRACE") else None,
    )
    texts: list[str] = []
    result: ResultMessage | None = None
    async for message in query(prompt=PROMPT, options=options):
        if os.environ.get("TRACE"):
            print(f"     {message}")
        if isinstance(message, AssistantMessage):
            texts += [one.text for one in message.content if isinstance(one, TextBlock)]
        if isinstance(message, ResultMessage):
            result = message
    return "".join(texts), result


def main() -> int:
    """0 if Claude Code has answered."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        try:
            text, result = asyncio.run(asyncio.wait_for(ask(Path(home)), TIMEOUT_S))
        except Exception as error:
            print(f"FAIL claude_code: {type(error).__name__}: {error}")
            return 1
    seconds = time.monotonic() - begun
    if result is None or result.is_error or "API Error" in text:
        print(f"FAIL claude_code: {text!r}, {result}")
        return 1
    print(f"ok   claude_code: {text.strip()[:200]!r} in {result.num_turns} turns, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
