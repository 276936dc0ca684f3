"""`python`: a Python subset in pydantic-monty, a worker process without files, network or imports.

Measured: endless loops end after the time limit, a 1 GB string at the memory limit, `open` is refused. A call
takes 4 to 35 ms. The code sees `files()` and `read_text(path)`, which act as the `read` tool does. Real
packages need a shell.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic import Field

from agents.tools.arguments import Arguments
from agents.tools.beneath import read_beneath
from agents.tools.bounded_text import bounded
from agents.tools.read import canonical, text_of
from agents.tools.sensitive import FILE_TAINT, file_taint, taint_of
from agents.tools.tool import Effect, Taint, Tool, ToolContext, ToolOutput
from agents.workspace.workspace import list_files

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, ResourceLimits

RUN_S = 5.0
MAX_PRINTED_BYTES = 1 << 20
MAX_VALUE_CHARS = 4_000
LIMITS: "ResourceLimits" = {
    "max_feed_duration_secs": RUN_S,
    "max_memory": 128 << 20,
    "max_recursion_depth": 200,
    "max_suspensions": 2_000,
    "max_total_sleep_secs": 1.0,
}


class PythonArguments(Arguments):
    """The code; the value of its last expression is returned beside what it prints."""

    code: str = Field(min_length=1, max_length=50_000)


class _Files:
    """The functions that the code may call, and the labels of what it has read through them."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self.taint: frozenset[Taint] = frozenset({Taint.TRUSTED})

    def files(self) -> list[str]:
        """Paths of the files, as `.gitignore` leaves them."""
        self.taint |= FILE_TAINT
        return list(list_files(self._context.root))

    def read_text(self, path: object) -> str:
        """The text of one file."""
        name = canonical(str(path))
        text = text_of(name, read_beneath(self._context.root, name))
        self.taint |= file_taint(text, name)
        return text

    def functions(self) -> dict[str, Callable[..., object]]:
        """By the name that the code uses."""
        return {"files": self.files, "read_text": self.read_text}


@asynccontextmanager
async def _pool() -> AsyncIterator["AsyncMonty"]:
    """A pool of one worker for one call; leaving the block kills it, also when the call is cancelled."""
    from pydantic_monty import AsyncMonty

    pool = AsyncMonty(min_processes=1, max_processes=1)
    # A cancelled start would leave its worker running: let it finish, which takes milliseconds.
    starting = asyncio.ensure_future(pool.__aenter__())
    try:
        await asyncio.shield(starting)
        yield pool
    finally:
        await starting
        await pool.__aexit__(None, None, None)


async def _python(arguments: Any, context: ToolContext) -> ToolOutput:
    from pydantic_monty import CollectString, MontyError

    printed = CollectString(max_bytes=MAX_PRINTED_BYTES)
    files = _Files(context)
    value: object = None
    error = ""
    async with _pool() as pool:
        try:
            async with asyncio.timeout(RUN_S * 2), pool.checkout(limits=LIMITS) as session:
                value = await session.feed_run(
                    arguments.code, external_lookup=files.functions(), print_callback=printed
                )
        except TimeoutError:
            error = f"TimeoutError: the code took more than {RUN_S * 2:g} s"
        except MontyError as raised:
            error = " ".join(str(raised).split())[:500]
    output = printed.output
    shown = "" if value is None else repr(value)[:MAX_VALUE_CHARS]
    text = "\n".join(part for part in (output.rstrip("\n"), shown, error) if part)
    return ToolOutput(
        bounded(text) or "No output.",
        data={"output": bounded(output), "value": shown, "error": error},
        failed=bool(error),
        taint=files.taint | taint_of(text),
    )


PYTHON = Tool(
    name="python",
    description="Compute with a Python subset; files() and read_text(path) read the project.",
    arguments=PythonArguments,
    effects=frozenset({Effect.READ}),
    call=_python,
    timeout_s=RUN_S * 2 + 5,
    target=lambda arguments: arguments.code,
)
