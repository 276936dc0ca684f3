"""`error_of`: runs Python that a model wrote, and says how it fails.

It runs in pydantic-monty, an interpreter without files, network and clock. What that subset of Python cannot
run, such as generators, runs in the sandbox, where there is one.
"""

import asyncio
import re
import sys
from typing import TYPE_CHECKING

from agents.sandbox.choice import open_sandbox
from agents.sandbox.policy import Limits, SandboxPolicy
from agents.sandbox.sandbox import Command, SandboxFailed, SandboxUnavailable
from agents.sandbox.scratch import scratch_folder

if TYPE_CHECKING:
    from pydantic_monty import ResourceLimits

RUN_S = 5.0
LIMITS: "ResourceLimits" = {
    "max_feed_duration_secs": RUN_S,
    "max_memory": 128 << 20,
    "max_recursion_depth": 500,
}
_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_ASSERTION = "AssertionError"


def fenced_code(text: str) -> str:
    """The code of a text: what is in its first fence, or else all of it."""
    match = _FENCE.search(text)
    return (match[1] if match else text).strip("\n") + "\n"


async def error_of(code: str) -> str:
    """How a program fails, in one line; empty if it runs to its end. It may take `RUN_S` seconds."""
    error = await _in_monty(code)
    if not error or error.startswith(_ASSERTION):
        return error
    # The subset may lack what the program needs: let Python decide, if it can do so safely.
    found = await _in_sandbox(code)
    return error if found is None else found


async def _in_monty(code: str) -> str:
    from pydantic_monty import AsyncMonty, MontyError, MontySyntaxError

    async with AsyncMonty(min_processes=1, max_processes=1) as pool:
        try:
            async with asyncio.timeout(RUN_S * 2), pool.checkout(limits=LIMITS) as session:
                await session.feed_run(code, print_callback=lambda *_: None)
        except TimeoutError:
            return f"TimeoutError: it took more than {RUN_S * 2:g} s"
        except MontySyntaxError as error:
            return f"SyntaxError: {error}".splitlines()[0][:300]
        except MontyError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return lines[-1].strip()[:300]
    return ""


async def _in_sandbox(code: str) -> str | None:
    """As `error_of`; None if there is no sandbox."""
    try:
        sandbox = await open_sandbox()
        with scratch_folder("pravaha-measure-") as folder:
            policy = SandboxPolicy(writable=(folder,), limits=Limits(wall_s=RUN_S * 2))
            done = await sandbox.run(Command([sys.executable, "-I", "-c", code], folder), policy)
    except (SandboxUnavailable, SandboxFailed):
        return None
    if done.status == 0:
        return ""
    lines = done.output.text.strip().splitlines()
    return (done.ended_by or (lines[-1] if lines else f"status {done.status}"))[:300]
