"""The texts that a task gives by name: `output`, which is checked, and `source`, which it is checked against.

An input may be a path in the workspace, a folder of it, a list of paths, a text, or a JSON value. A task may name
both in words: `Check summary.md against source.md`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from agents.detectors.detector import DetectorContext
from agents.detectors.text.conventions import Kind, Pair, pairs_by_name
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

PROSE = ("markdown", "text", "rst")
_MAX_PATH = 300
_MAX_TASK = 2_000
_PATH = r"[`'\"]?((?:[\w.-]+/)*[\w.-]*\w/?)[`'\"]?"
_CHECK = re.compile(
    rf"\b(?:check|compare|verify|validate)\s+(?:[a-z]+\s+){{0,4}}?{_PATH}"
    rf"(?:\s+(?:against|with|to|by)\s+(?:[a-z]+\s+){{0,4}}?{_PATH})?(?=[\s,;:.!?]|$)",
    re.IGNORECASE,
)
_MAX_PARTS = 1_000


def named_inputs(workspace: Workspace, inputs: Mapping[str, Any], task: str) -> Mapping[str, Any]:
    """The inputs, with the files that the task names to be checked if no input gives them."""
    if "output" in inputs:
        return inputs
    match = _CHECK.search(task[:_MAX_TASK])
    if match is None or not _exists(workspace, match[1]):
        return inputs
    named = {"output": match[1]}
    if match[2] and _exists(workspace, match[2]):
        named["source"] = match[2]
    return {**named, **inputs}


def _exists(workspace: Workspace, path: str) -> bool:
    path = path.removeprefix("./").rstrip("/")
    return workspace.get(path) is not None or any(
        file.path.startswith(f"{path}/") for file in workspace
    )


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
    inputs = named_inputs(workspace, context.inputs, context.task)
    output = given_files(workspace, inputs, "output")
    return output, given_files(workspace, inputs, "source", context.document)


def checked_pairs(workspace: Workspace, context: DetectorContext, kind: Kind) -> list[Pair]:
    """What the task gives to check with what to check it against; what belongs together by name if it gives nothing."""
    output, source = output_and_source(workspace, context)
    if output or source or context.document:
        return [(output, source)]
    return pairs_by_name(workspace, kind)


def prose_files(workspace: Workspace, context: DetectorContext) -> list[SourceFile]:
    """The input `output`, or else the document, or else all prose of the workspace."""
    inputs = named_inputs(workspace, context.inputs, context.task)
    if "output" in inputs or context.document:
        return given_files(workspace, inputs, "output", context.document)
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
