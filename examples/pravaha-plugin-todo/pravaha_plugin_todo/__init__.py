"""An example plugin: the agent `todo_audit` lists TODO and FIXME comments.

Install it beside Pravāha (`pip install ./examples/pravaha-plugin-todo`); then `pravaha plugins list` shows it
and `pravaha agents run todo_audit PATH` runs its agent.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.plugins.hooks import API_VERSION, hookimpl
from agents.workspace.workspace import Workspace

pravaha_api_version = API_VERSION

TODO = Rule("todo-comment", Severity.INFO, "Work that is left to do")
_COMMENT = re.compile(r"(?:#|//|/\*|<!--|--)\s*(TODO|FIXME)\b[:\s]*(.*)")


def find_todos(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    """One finding for each comment."""
    for file in workspace:
        context.check_cancelled()
        for number, line in enumerate(file.lines, 1):
            if match := _COMMENT.search(line):
                kind, text = match.groups()
                yield TODO.at(file, number, f"{kind}: {text.strip() or 'no description'}")


@hookimpl
def pravaha_detectors() -> Iterable[Detector]:
    """The detector."""
    return [Detector("todo_comments", "Lists TODO and FIXME comments.", find_todos, (TODO,))]


@hookimpl
def pravaha_agent_folders() -> Iterable[Path]:
    """The folder of the agent's specification."""
    return [Path(__file__).parent / "agents"]
