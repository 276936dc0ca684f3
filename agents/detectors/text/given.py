"""The texts that a task gives by name: `output`, which is checked, and `source`, which it is checked against.

An input may be a path in the workspace, a folder of it, a list of paths, a text, or a JSON value.
"""

import json
from collections.abc import Mapping
from typing import Any

from agents.detectors.detector import DetectorContext
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

PROSE = ("markdown", "text", "rst")
_MAX_PATH = 300
_MAX_PARTS = 1_000


def given_files(
    workspace: Workspace, inputs: Mapping[str, Any], name: str, document: str = ""
) -> list[SourceFile]:
    """The files that an input names or is; those of the document, if there is no such input."""
    value = inputs.get(name)
    if value is None:
        return [SourceFile(name, document.encode("utf-8", "replace"))] if document else []
    return _files(workspace, name, value)


def output_and_source(
    workspace: Workspace, context: DetectorContext
) -> tuple[list[SourceFile], list[SourceFile]]:
    """The files to check and those to check against; the second may come from the document."""
    output = given_files(workspace, context.inputs, "output")
    return output, given_files(workspace, context.inputs, "source", context.document)


def prose_files(workspace: Workspace, context: DetectorContext) -> list[SourceFile]:
    """The input `output`, or else the document, or else all prose of the workspace."""
    if "output" in context.inputs or context.document:
        return given_files(workspace, context.inputs, "output", context.document)
    return [file for file in workspace if file.language in PROSE]


def _files(workspace: Workspace, name: str, value: Any) -> list[SourceFile]:
    if isinstance(value, str):
        if len(value) <= _MAX_PATH and "\n" not in value:
            path = value.strip().removeprefix("./").rstrip("/")
            file = workspace.get(path)
            if file is not None:
                return [file]
            inside = [file for file in workspace if file.path.startswith(f"{path}/")]
            if inside:
                return inside
        return [SourceFile(name, value.encode("utf-8", "replace"))]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        parts = [_files(workspace, f"{name}/{i}", one) for i, one in enumerate(value[:_MAX_PARTS])]
        return [file for files in parts for file in files]
    try:
        text = json.dumps(value, ensure_ascii=False, indent=1)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return [SourceFile(f"{name}.json", text.encode("utf-8", "replace"))]
