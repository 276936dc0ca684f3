"""`ToolSettings`: what the user decided about the tools of all runs."""

from dataclasses import dataclass
from pathlib import Path

from agents.runs.approval_rules import ApprovalRule
from agents.sandbox.policy import SandboxMode

MAX_ARTIFACTS = 200


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What the user decided about the tools.

    Attributes:
        sandbox: where commands are executed.
        rules: modes of calls by patterns.
        artifacts: folder for outputs too long to return; None keeps their heads and tails only.
    """

    sandbox: SandboxMode = "auto"
    rules: tuple[ApprovalRule, ...] = ()
    artifacts: Path | None = None


def remove_old_artifacts(folder: Path, *, kept: int = MAX_ARTIFACTS) -> None:
    """Remove all but the newest outputs."""
    try:
        files = sorted(folder.glob("*.log"), key=lambda file: file.stat().st_mtime)
    except OSError:
        return
    for file in files[: max(0, len(files) - kept)]:
        file.unlink(missing_ok=True)
