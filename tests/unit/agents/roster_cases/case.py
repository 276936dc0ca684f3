"""A seeded input of one agent, and what its run without a model must deliver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.api.events import RunState
from agents.cluster import Cluster
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.runs.result import RunResult
from agents.specs.packaged import packaged_agents


@dataclass(frozen=True)
class Case:
    """A task and its check.

    Attributes:
        check: asserts on the result.
        files: texts by path.
        task: the user's words.
        document: a text to work on.
        inputs: structured inputs.
        needs_model: whether all that is asked, or a part of it, needs a model.
    """

    check: Callable[[RunResult], None]
    files: Mapping[str, str] = field(default_factory=dict)
    task: str = ""
    document: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    needs_model: bool = False


def emptiness(result: RunResult) -> str:
    """Why a result is nothing that an agent without a model may return on its seeded input; else empty."""
    output = result.output
    if result.state is not RunState.OK or output is None:
        return f"{result.agent} did not finish: {result.error}"
    if output.cannot_do:
        return f"{result.agent} could not do its task: {output.cannot_do}"
    members = output.model_dump(exclude={"cannot_do"})
    if not any(members[name] not in (None, "", [], {}, 0, False) for name in members):
        return f"{result.agent} returned nothing"
    return ""


def task_of(case: Case, folder: Path) -> dict[str, Any]:
    """What `Cluster.run` is given for a case, whose files are written below `folder`."""
    for path, text in case.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return {
        "paths": [folder] if case.files else [],
        "task": case.task,
        "document": case.document,
        "inputs": case.inputs,
    }


async def run_case(key: str, case: Case, registry: Registry, folder: Path) -> RunResult:
    """Run the built-in agent `key` without a model."""
    cluster = Cluster(registry=registry, roster=Roster({key: packaged_agents()[key]}))
    return await cluster.run(key, **task_of(case, folder))
