# /// script
# requires-python = ">=3.11"
# dependencies = ["agent-client-protocol==0.12.1"]
# ///
"""The client of the Agent Client Protocol's Python package, as an editor: `python clients/acp_sdk.py URL`.

It starts `pravaha acp --attach URL` from PATH or from the project's environment.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from acp import spawn_agent_process, text_block
from acp.exceptions import RequestError
from checks import Checks

OWN = Path(__file__).parents[1] / ".venv" / "bin" / "pravaha"
PRAVAHA = str(OWN) if OWN.exists() else shutil.which("pravaha") or "pravaha"
PATIENCE_S = 300


class Editor:
    """Takes what it is told, and allows nothing."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        """Keep what is told."""
        self.updates.append(update)

    async def request_permission(self, **more: Any) -> Any:
        """Allow nothing."""
        return {"outcome": {"outcome": "cancelled"}}

    def on_connect(self, conn: Any) -> None:
        """Nothing is to be done."""

    def of(self, kind: str) -> list[Any]:
        """What was told of this kind."""
        return [one for one in self.updates if one.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """The text of all messages of this kind."""
        return "".join(one.content.text for one in self.of(kind))


async def asked(agent: Any, session: str, text: str) -> str:
    """Why the answer ended."""
    async with asyncio.timeout(PATIENCE_S):
        done = await agent.prompt(session_id=session, prompt=[text_block(text)])
    return str(done.stop_reason)


async def checked(checks: Checks, url: str, folder: Path) -> None:
    environment = {**os.environ, "PRAVAHA_DATA_DIR": str(folder / "data")}
    arguments = ["acp", "--attach", url]
    if key := os.environ.get("PRAVAHA_API_KEY"):
        arguments += ["--api-key", key]
    editor = Editor()
    started = spawn_agent_process(
        editor, PRAVAHA, *arguments, env=environment, use_unstable_protocol=True
    )
    async with started as (agent, process):
        with checks.check("it says what it is"):
            said = await agent.initialize(protocol_version=1)
            assert said.agent_info is not None
            assert said.agent_info.name == "pravaha"
        new = await agent.new_session(cwd=str(folder), mcp_servers=[])
        with checks.check("it answers"):
            assert await asked(agent, new.session_id, "Say hello.") in ("end_turn", "max_tokens")
            assert editor.text().strip()
        with checks.check("it tells its commands"):
            names = {one.name for told in editor.of("available_commands_update")
                     for one in told.available_commands}  # fmt: skip
            assert {"security_audit", "repair", "code-review"} <= names
        with checks.check("it stops when it is told to"):
            running: Coroutine[Any, Any, str] = asked(agent, new.session_id, "Count to a thousand.")
            task = asyncio.create_task(running)
            await asyncio.sleep(2)
            await agent.cancel(session_id=new.session_id)
            assert await task in ("cancelled", "end_turn")
        with checks.check("it lists and loads the conversation"):
            listed = (await agent.list_sessions(cwd=str(folder))).sessions
            assert [one.session_id for one in listed] == [new.session_id]
            editor.updates.clear()
            await agent.load_session(cwd=str(folder), session_id=new.session_id, mcp_servers=[])
            assert "Say hello." in editor.text("user_message_chunk")
        with checks.check("it refuses an unknown session"):
            try:
                await asked(agent, "none", "Hello?")
            except RequestError as error:
                assert "no session" in str(error)
            else:
                raise AssertionError("it was not refused")
        assert process.returncode is None


def main(url: str) -> int:
    checks = Checks("agent-client-protocol 0.12.1")
    with TemporaryDirectory() as base:
        asyncio.run(checked(checks, url.rstrip("/"), Path(base)))
    return checks.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
