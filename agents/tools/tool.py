"""`Tool`: a typed, asynchronous action with declared effects.

The executor of a run (`agents.runs`) checks permissions, budget and taint, asks for approval and applies the
timeout. A tool only validates and acts.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.sandbox.policy import SandboxMode
from agents.tools.file_access import DiskFiles, FileAccess

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_OUTPUT_CHARS = 16_000


class Effect(StrEnum):
    """What a tool does to the world; decides permissions and taint rules."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    EGRESS = "egress"


class Taint(StrEnum):
    """Label of data. A derived value carries all labels of its inputs.

    `PRIVATE` is for secrets and personal data, `LOCAL` for everything else that is the user's and not known
    to be public: files, history, documents. `UNTRUSTED` is text that somebody else may have written, which
    files are, too.
    """

    TRUSTED = "trusted"
    LOCAL = "local"
    PRIVATE = "private"
    UNTRUSTED = "untrusted"


@dataclass(slots=True)
class ToolContext:
    """Where a tool acts.

    Attributes:
        root: folder beneath which files are read and written.
        run: id of the calling run.
        agent: key of the calling agent.
        state: values that live as long as the run, by the name of the tool that owns them.
        artifacts: folder for outputs too long to return, or None.
        progress: called with pieces of output while the tool runs.
        taint: labels of everything the run has read before this call.
        memory: the database of the memory; None if the run has none.
        sandbox: where commands are executed.
        files: where files are read and written.
    """

    root: Path
    run: str = ""
    agent: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    artifacts: Path | None = None
    progress: Callable[[str], None] = lambda text: None
    taint: frozenset[Taint] = frozenset({Taint.TRUSTED})
    memory: Path | None = None
    sandbox: SandboxMode = "auto"
    files: FileAccess = field(default_factory=DiskFiles)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a call.

    Attributes:
        text: what a model reads, at most `MAX_OUTPUT_CHARS` characters, head and tail kept.
        data: the same as JSON members, for procedures.
        failed: whether the action failed; `text` says why.
        taint: labels of the output.
        choices: values of later arguments that the output makes known, by argument name, such as
            `{"path": ("a.py", "b.py")}`; the grammar of the next step offers them.
    """

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False
    taint: frozenset[Taint] = frozenset({Taint.TRUSTED})
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Attributes:
        name: as in specifications, such as `read`.
        description: one sentence for the catalogue.
        arguments: pydantic model of the input; unknown members are errors.
        effects: what it may do; `READ` alone needs no approval.
        call: acts. Cancelling the task must stop it and its processes.
        timeout_s: seconds after which the executor cancels the call.
        idempotent: whether a failed call may be repeated.
        needs_approval: whether this call needs an approval by its arguments, beside the effects.
        asks_when_untrusted: whether this call needs an approval, whatever the mode is, once the run has read
            untrusted data; for calls that could make an injected text last.
        target: what an approver sees and may remember, such as `pytest -q`, from the arguments.
        words: what the patterns of approval rules are matched against, from the arguments; None takes the
            target as one word.
        unavailable: why it cannot be called at all and what to do about it; empty if it can. Such a tool is
            offered to no model.
        preview: the unified diff of what a call would change, for the approver; None for tools that change no
            files. It raises `InvalidTask` if the call would fail, so that nobody is asked about it.
        refusal: why a call with these arguments is refused whatever an approver says; empty if it is not.
    """

    name: str
    description: str
    arguments: "type[BaseModel]"
    effects: frozenset[Effect]
    call: Callable[[Any, ToolContext], Awaitable[ToolOutput]]
    timeout_s: float = 30.0
    idempotent: bool = True
    needs_approval: Callable[[Any], bool] = lambda arguments: False
    asks_when_untrusted: Callable[[Any], bool] = lambda arguments: False
    target: Callable[[Any], str] = lambda arguments: ""
    words: Callable[[Any], tuple[str, ...]] | None = None
    unavailable: str = ""
    preview: Callable[[Any, ToolContext], Awaitable[str]] | None = None
    refusal: Callable[[Any], str] = lambda arguments: ""
