"""`run_calls`: calls of several candidates in one sandboxed process, as outcomes that can be compared."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agents.api.errors import AgentError
from agents.sandbox.choice import open_sandbox
from agents.sandbox.policy import Limits, SandboxPolicy
from agents.sandbox.sandbox import Command
from agents.sandbox.scratch import scratch_folder
from agents.width import probe
from agents.width.values import same_value

_MAX_RESULT_BYTES = 64 << 20
_PROBE = Path(probe.__file__)


class ProbeFailed(AgentError):
    """The candidates could not be run at all."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a candidate.

    Attributes:
        expression: whose value is the outcome.
        setup: statements before it.
        expected: an expression for the value that it should have, or None.
        after: an expression evaluated after it, such as the arguments, or None.
        shown: the call as a person reads it; empty for `expression`.
    """

    expression: str
    setup: str = ""
    expected: str | None = None
    after: str | None = None
    shown: str = ""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a call did.

    Attributes:
        error: name of the exception that it raised, `TooSlow`, or `Ended` if the process ended; or empty.
        message: of the exception.
        line: line of the candidate where it arose, or 0.
        value, expected, after: encoded values (`agents.width.probe`), or None.
        shown: the value as Python shows it.
        printed: what was written to standard output.
    """

    error: str = ""
    message: str = ""
    line: int = 0
    value: Any = None
    expected: Any = None
    after: Any = None
    shown: str = ""
    printed: str = ""

    def same(self, other: "CallOutcome") -> bool:
        """Whether two calls had the same effect: the same exception, or equal values.

        Without a value, what was printed and what became of the arguments counts.
        """
        if self.error or other.error:
            return self.error == other.error
        if self.value is None or other.value is None or not same_value(self.value, other.value):
            return False
        if self.value[0] != "NoneType":
            return True
        if self.printed != other.printed:
            return False
        return self.after is None or other.after is None or same_value(self.after, other.after)


@dataclass(frozen=True, slots=True)
class Run:
    """The calls of one candidate.

    Attributes:
        problem: why its code could not be loaded, or empty.
        line: the line of the problem, or 0.
        outcomes: one per call; empty if there is a problem.
    """

    problem: str = ""
    line: int = 0
    outcomes: tuple[CallOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """Where candidates run.

    Attributes:
        module_text: the text of the module that a candidate's code becomes, such as the file around it.
        module: the module's dotted name.
        folders: searched for imports, and readable.
        python: the interpreter.
        call_s: processor seconds of one call.
        silence_s: seconds without an outcome after which a candidate's process is killed; more than `call_s`,
            which code that sleeps or computes in C does not notice.
        total_s: seconds of all calls of all candidates.
        memory_bytes: of each candidate's process.
    """

    module_text: Callable[[str], str] = lambda code: code
    module: str = "candidate"
    folders: tuple[Path, ...] = ()
    python: str = field(default_factory=lambda: sys.executable)
    call_s: float = 1.0
    silence_s: float = 10.0
    total_s: float = 30.0
    memory_bytes: int = 512 << 20


async def run_calls(setting: Setting, codes: Sequence[str], calls: Sequence[Call]) -> list[Run]:
    """Run all calls on all candidates.

    Raises:
        ProbeFailed: the probe wrote no result; what it said is in the message.
        SandboxUnavailable: there is no sandbox on this machine.
        SandboxFailed: the sandbox did not start it.
    """
    order = {
        "sources": [setting.module_text(code) for code in codes],
        "module": setting.module,
        "path": [str(folder) for folder in setting.folders],
        "calls": [
            {"setup": c.setup, "expression": c.expression, "expected": c.expected, "after": c.after}
            for c in calls
        ],
        "limits": {
            "load": max(5.0, setting.call_s),
            "call": setting.call_s,
            "silence": setting.silence_s,
            "memory": setting.memory_bytes,
        },
    }
    with scratch_folder("pravaha-probe-") as folder:
        asked, result = folder / "order.json", folder / "result.json"
        asked.write_bytes(orjson.dumps(order))
        limits = Limits(
            memory_bytes=max(1 << 30, setting.memory_bytes),
            cpu_s=int(setting.total_s) + 1,
            wall_s=setting.total_s,
            processes=64,
            file_bytes=_MAX_RESULT_BYTES,
        )
        words = [setting.python, "-I", "-B", str(_PROBE), str(asked), str(result)]
        readable = (_PROBE, *(one for one in setting.folders if one.exists()))
        runner = await open_sandbox()
        done = await runner.run(
            Command(words, folder, {"PYTHONHASHSEED": "0"}),
            SandboxPolicy(readable=readable, writable=(folder,), limits=limits),
        )
        if done.ended_by == "the time limit":
            slow = "the candidates took too long together"
            return [Run(problem=slow) for _ in codes]
        if result.is_symlink() or not result.is_file():
            lines = done.output.text.strip().splitlines()
            said = lines[-1][:200] if lines else f"exit status {done.status}"
            raise ProbeFailed(f"The candidates could not be run: {done.absent or said}.")
        return _runs(result.read_bytes(), len(codes), len(calls))


def _runs(data: bytes, codes: int, calls: int) -> list[Run]:
    """The result, which a candidate may have written to.

    Raises:
        ProbeFailed: it is not usable.
    """
    try:
        # Not orjson: it refuses half of a surrogate pair, which a text may have.
        runs = [_run(one) for one in json.loads(data)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProbeFailed("The outcome of the candidates is not usable.") from error
    if len(runs) != codes or any(not one.problem and len(one.outcomes) != calls for one in runs):
        raise ProbeFailed("The outcome of the candidates is not usable.")
    return runs


def _run(data: dict[str, Any]) -> Run:
    loaded = data["loaded"]
    if loaded.get("error"):
        said = f"{loaded['error']}: {loaded['message']}".rstrip(": ")
        return Run(_clean(said), loaded["line"])
    return Run(outcomes=tuple(_outcome(one) for one in data["outcomes"]))


def _outcome(data: dict[str, Any]) -> CallOutcome:
    """An outcome; what is shown or told has no halves of surrogate pairs, which events cannot hold."""
    members = dict(data)
    for name in ("message", "shown", "printed"):
        if name in members:
            members[name] = _clean(members[name])
    return CallOutcome(**members)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
