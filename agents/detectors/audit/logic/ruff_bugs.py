"""Ruff's rules about bugs, as a subprocess without the project's configuration."""

import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from agents.api.data_file import Entry, read_entries
from agents.api.finding import Finding, Severity
from agents.detectors.audit.external import copied, run_module
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.rule_file import RuledExample
from agents.workspace.workspace import Workspace

TIMEOUT_S = 120.0


class RuffRules(Entry):
    """What `ruff_bugs.yaml` says about ruff's rules.

    Attributes:
        high: rules by severity.
        medium: see `high`.
        low: see `high`.
        not_in_tests: rules that are not reported in tests.
        cwe: numbers in the Common Weakness Enumeration.
        examples: tests.
    """

    high: tuple[str, ...]
    medium: tuple[str, ...]
    low: tuple[str, ...]
    not_in_tests: frozenset[str]
    cwe: dict[str, int]
    examples: tuple[RuledExample, ...]

    @cached_property
    def severities(self) -> Mapping[str, Severity]:
        """By rule."""
        return (
            dict.fromkeys(self.low, Severity.LOW)
            | dict.fromkeys(self.medium, Severity.MEDIUM)
            | dict.fromkeys(self.high, Severity.HIGH)
        )


@cache
def _rules() -> RuffRules:
    (found,) = read_entries(Path(__file__).with_suffix(".yaml"), RuffRules)
    return found


def ruff_messages(workspace: Workspace, context: DetectorContext) -> Iterator[dict[str, Any]]:
    """Ruff's own records over the Python files; `filename` is the path in the workspace."""
    files = [file for file in workspace.of("python") if file.python is not None]
    if not files:
        return
    with copied(files) as folder:
        arguments = [
            "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", "--output-format=json",
            "--target-version=py314", "--preview",
            f"--select={','.join(sorted(_rules().severities))}", ".",
        ]  # fmt: skip
        done = run_module("ruff", arguments, folder=folder, timeout_s=TIMEOUT_S)
        context.check_cancelled()
        records = _parsed(done.stdout) if done is not None else None
        if records is None:
            context.note("ruff could not be run: its rules about bugs were not checked.")
            return
        for record in records:
            name = Path(str(record.get("filename", "")))
            if name.is_relative_to(folder.resolve()):
                yield {**record, "filename": name.relative_to(folder.resolve()).as_posix()}


def _parsed(text: str) -> list[dict[str, Any]] | None:
    try:
        records = json.loads(text)
    except ValueError:
        return None
    if not isinstance(records, list):
        return None
    return [record for record in records if isinstance(record, dict)]


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for record in ruff_messages(workspace, context):
        code = str(record.get("code") or "")
        file = workspace.get(record["filename"])
        severity = _rules().severities.get(code)
        if file is None or severity is None:
            continue
        if is_test_path(file.path) and code in _rules().not_in_tests:
            continue
        if code in ("F401", "F403", "F405", "F811") and file.path.endswith("__init__.py"):
            continue  # re-exports
        line = int((record.get("location") or {}).get("row") or 1)
        end = int((record.get("end_location") or {}).get("row") or line)
        rule = Rule(code, severity, code, _rules().cwe.get(code))
        message = str(record.get("message") or code).rstrip(".") + "."
        yield rule.at(file, line, message, end_line=min(end, line + 20))


RUFF_BUGS = Detector(
    "ruff_bugs",
    "Ruff's rules about bugs (B, F, E7, PLE, PLW, RUF, BLE, ASYNC), without the project's configuration.",
    _detect,
)
