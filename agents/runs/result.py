"""`RunResult`: what a run delivers, whole or partial."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import ValidationError

from agents.api.errors import InvalidTask
from agents.api.events import RunState
from agents.api.finding import Finding, finding_fields, finding_from_fields
from agents.api.usage import Usage
from agents.outputs.base import Output
from agents.tools.tool import Taint


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
        taint: labels of the output, for runs that take it as an input.
    """

    run: str
    agent: str
    state: RunState
    output: Output | None = None
    model: str = ""
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: str = ""
    taint: frozenset[Taint] = frozenset({Taint.TRUSTED})

    @property
    def findings(self) -> list[Finding]:
        """The findings of the output; empty if its schema has none."""
        records = getattr(self.output, "findings", None) or ()
        return [finding_from_fields(record.model_dump()) for record in records]

    def stored_fields(self) -> dict[str, Any]:
        """The whole result as JSON members, for `result_from_fields`."""
        output = None if self.output is None else self.output.model_dump(mode="json")
        return {
            "run": self.run,
            "agent": self.agent,
            "state": self.state.value,
            "schema": None if self.output is None else type(self.output).__name__,
            "output": output,
            "model": self.model,
            "notes": list(self.notes),
            "usage": asdict(self.usage),
            "error": self.error,
            "taint": sorted(self.taint),
        }

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


def result_from_fields(data: Mapping[str, Any], outputs: Mapping[str, type[Output]]) -> RunResult:
    """The inverse of `RunResult.stored_fields`.

    Args:
        data: the members.
        outputs: output models by name.

    Raises:
        InvalidTask: the output's schema is not registered any more, or has changed.
    """
    schema, output = data["schema"], None
    try:
        if schema is not None:
            output = outputs[schema].model_validate(data["output"])
    except (KeyError, ValidationError) as error:
        raise InvalidTask(
            f"The stored result of {data['agent']} does not match the output schema {schema} of this "
            "version: run the pipeline anew."
        ) from error
    return RunResult(
        run=data["run"],
        agent=data["agent"],
        state=RunState(data["state"]),
        output=output,
        model=data["model"],
        notes=tuple(data["notes"]),
        usage=Usage(**data["usage"]),
        error=data["error"],
        # A result that was stored without labels may be derived from anything.
        taint=frozenset(map(Taint, data.get("taint", list(Taint)))),
    )
