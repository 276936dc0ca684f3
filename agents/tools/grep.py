"""`grep`: lines that match a regular expression, in the files that `.gitignore` leaves."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from agents.api.errors import InvalidTask
from agents.tools import grep_worker
from agents.tools.arguments import Arguments
from agents.tools.beneath import MAX_FILE_BYTES
from agents.tools.bounded_text import bounded
from agents.tools.glob import matches
from agents.tools.process import run_process
from agents.tools.sensitive import FILE_TAINT, file_taint
from agents.tools.tool import Effect, Tool, ToolContext, ToolOutput
from agents.workspace.workspace import list_files

MAX_MATCHES = 200
SEARCH_S = 20.0
_WORKER = Path(grep_worker.__file__)


class GrepArguments(Arguments):
    """A Python regular expression, and a `glob` pattern of the files to search."""

    pattern: str = Field(min_length=1, max_length=500)
    files: str = Field(default="**", min_length=1, max_length=200)


async def _grep(arguments: Any, context: ToolContext) -> ToolOutput:
    try:
        re.compile(arguments.pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidTask(
            f"{arguments.pattern!r:.100} is no regular expression ({error})."
        ) from error
    names = await asyncio.to_thread(list_files, context.root)
    request = {
        "root": str(context.root),
        "pattern": arguments.pattern,
        "paths": [name for name in names if matches(arguments.files, name)],
        "limit": MAX_MATCHES,
        "max_bytes": MAX_FILE_BYTES,
    }
    done = await run_process(
        [sys.executable, "-I", str(_WORKER)],
        input_bytes=json.dumps(request).encode(),
        timeout_s=SEARCH_S,
    )
    if done.timed_out:
        raise InvalidTask(f"The search took more than {SEARCH_S:g} s: simplify the expression.")
    if done.status != 0:
        raise InvalidTask("The search failed.")
    answer = json.loads(done.output)
    lines = [f"{path}:{number}: {line}" for path, number, line in answer["found"]]
    text = "\n".join(lines)
    if answer["truncated"]:
        text += f"\n[only the first {MAX_MATCHES} matches]"
    taint = {label for path, _, line in answer["found"] for label in file_taint(line, path)}
    return ToolOutput(
        bounded(text) if lines else f"No match in {answer['searched']} files.",
        data={
            "matches": [
                {"path": path, "line": number, "text": line}
                for path, number, line in answer["found"]
            ],
            "searched": answer["searched"],
        },
        taint=FILE_TAINT | taint,
        choices={"path": tuple(dict.fromkeys(path for path, _, _ in answer["found"]))},
    )


GREP = Tool(
    name="grep",
    description="Find lines that match a regular expression.",
    arguments=GrepArguments,
    effects=frozenset({Effect.READ}),
    call=_grep,
    target=lambda arguments: arguments.pattern,
)
