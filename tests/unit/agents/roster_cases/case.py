"""A seeded input of one agent, and what its run without a model must deliver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.api.events import RunState
from agents.cluster import Cluster
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.roster.spec_file import read_spec
from agents.runs.result import RunResult

INPUTS = Path(__file__).parent.parent / "roster_inputs"


@dataclass(frozen=True)
class Case:
    """A task and its check.

    Attributes:
        check: asserts on the result.
        files: texts by path, or the name of a folder beneath `roster_inputs`.
        task: the user's words.
        document: a text to work on.
        inputs: structured inputs.
        base: folder beneath `roster_inputs` with the state before the change.
    """

    check: Callable[[RunResult], None]
    files: Mapping[str, str] | str = field(default_factory=dict)
    task: str = ""
    document: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    base: str = ""


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


async def run_case(key: str, case: Case, registry: Registry, folder: Path) -> RunResult:
    """Run the built-in agent `key` without a model; dictionaries of files are written below `folder`."""
    root = folder if not isinstance(case.files, str) else INPUTS / case.files
    if not isinstance(case.files, str):
        for path, text in case.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    path = next(one / f"{key}.md" for one in registry.agent_folders if (one / f"{key}.md").exists())
    spec = read_spec(path)
    # A tool that this build lacks must not hide what the agent does without it.
    spec = replace(spec, tools=tuple(tool for tool in spec.tools if tool in registry.tools))
    cluster = Cluster(registry=registry, roster=Roster({key: spec}))
    return await cluster.run(
        key,
        [root] if case.files else [],
        task=case.task,
        document=case.document,
        inputs=case.inputs,
        base=INPUTS / case.base if case.base else None,
    )
