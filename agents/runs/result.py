"""`RunResult`: what a run delivers, whole or partial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.api.events import RunState
from agents.api.finding import Finding, finding_fields, finding_from_fields
from agents.api.usage import Usage
from agents.outputs.base import Output


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one agent's run.

    Attributes:
        run: the run's id.
        agent: the agent's key.
        state: how it finished.
        output: by the agent's schema; None if the run failed before there was any.
        model: name of the model that took part, or empty.
        notes: what the user should know: missing tools, what the model could not do, skipped files.
        usage: what it used.
        error: one sentence if it failed.
    """

    run: str
    agent: str
    state: RunState
    output: Output | None = None
    model: str = ""
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: str = ""

    @property
    def findings(self) -> list[Finding]:
        """The findings of the output; empty if its schema has none."""
        records = getattr(self.output, "findings", None) or ()
        return [finding_from_fields(record.model_dump()) for record in records]

    def fields(self) -> Mapping[str, Any]:
        """The result as JSON members: those of `pravaha agents run --json`."""
        output = None if self.output is None else self.output.model_dump(mode="json")
        if output is not None:
            output.pop("findings", None)
        return {
            "run": self.run,
            "agent": self.agent,
            "state": self.state.value,
            "model": self.model or None,
            "findings": [finding_fields(finding) for finding in self.findings],
            "output": output,
            "notes": list(self.notes),
            "error": self.error or None,
            "usage": {
                "computed_tokens": self.usage.computed_tokens,
                "cached_tokens": self.usage.cached_tokens,
                "generated_tokens": self.usage.generated_tokens,
                "tool_calls": self.usage.tool_calls,
                "seconds": round(self.usage.seconds, 3),
            },
        }
