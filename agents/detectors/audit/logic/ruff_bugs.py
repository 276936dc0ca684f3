"""Ruff's rules about bugs, as a subprocess without the project's configuration."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.audit.external import copied, run_module
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.workspace import Workspace

TIMEOUT_S = 120.0
_HIGH = frozenset(
    "F821 F823 F502 F503 F504 F507 F508 F509 F521 F522 F524 F622 F632 F633 F701 F702 F704 F706 F707 "
    "PLE0100 PLE0101 PLE0116 PLE0117 PLE0118 PLE0302 PLE0303 PLE0305 PLE0307 PLE0308 PLE0604 "
    "PLE1142 PLE1205 PLE1206 PLE1300 PLE1307 PLE1310 PLE1519 PLE1520".split()
)
_MEDIUM = frozenset(
    "F402 F501 F505 F506 F523 F525 F601 F602 F631 F811 B002 B005 B006 B012 B013 B014 B015 B016 B018 B020 "
    "B021 B022 B023 B025 B029 B030 B031 B032 B033 B034 B035 B039 E711 E714 E721 "
    "E722 BLE001 PLE0237 PLE0241 PLE0605 PLE0643 PLE0704 PLE1132 PLE1141 PLE1507 PLE2502 PLE2510 PLE2512 PLE2513 "
    "PLE2514 PLE2515 PLW0128 PLW0129 PLW0131 PLW0133 PLW0177 PLW0211 PLW0245 PLW0406 PLW0711 "
    "PLW1501 PLW1508 PLW1509 PLW2101 RUF006 RUF008 RUF009 RUF012 RUF016 RUF018 RUF024 RUF026 RUF034 RUF040 "
    "RUF049 RUF060 ASYNC100 ASYNC105 ASYNC115 ASYNC210 ASYNC220 ASYNC221 ASYNC222 ASYNC230 ASYNC251 "
    "PT015 PLR1704 SIM222 SIM223".split()
)
_LOW = frozenset(
    "F401 F403 F405 F841 B007 B009 B010 B011 B017 B019 B026 B027 B028 B904 B905 B909 E701 E712 E713 E731 E741 PLW0120 "
    "PLW0127 PLW0602 PLW0604 PLW0642 PLW1510 PLW2901 RUF013 RUF015 RUF017 RUF059 PLR0133 ASYNC109 ASYNC110".split()
)
_CWE: Mapping[str, int] = {
    "F821": 457, "F823": 457, "F632": 597, "F841": 563, "F811": 561, "B006": 1321, "B018": 482,
    "B015": 482, "B023": 758, "B012": 584, "E722": 396, "BLE001": 396, "E711": 697, "E712": 697,
    "E721": 697, "PLR0133": 570, "PLW0129": 617, "SIM222": 571, "SIM223": 570,
    "PLW0177": 697, "B035": 694, "F601": 697, "F631": 617, "PLE1142": 670,
    "B020": 563, "B007": 563, "RUF006": 772, "PT015": 617,
}  # fmt: skip
_IN_TESTS = frozenset("B011 B015 B017 B018 BLE001 RUF012 RUF059 PLR0133 F811".split())
_SEVERITY = (
    dict.fromkeys(_LOW, Severity.LOW)
    | dict.fromkeys(_MEDIUM, Severity.MEDIUM)
    | dict.fromkeys(_HIGH, Severity.HIGH)
) | {"BLE001": Severity.LOW, "RUF012": Severity.LOW, "E721": Severity.LOW}
"""What ruff finds in style, typing and imports is left out. BLE001 and RUF012 are low: the built-in checks
report the swallowed exception and the shared class attribute that do harm."""


def ruff_messages(workspace: Workspace, context: DetectorContext) -> Iterator[dict[str, Any]]:
    """Ruff's own records over the Python files; `filename` is the path in the workspace."""
    files = [file for file in workspace.of("python") if file.python is not None]
    if not files:
        return
    with copied(files) as folder:
        arguments = [
            "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", "--output-format=json",
            "--target-version=py314", "--preview",
            f"--select={','.join(sorted(_SEVERITY))}", ".",
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
        severity = _SEVERITY.get(code)
        if file is None or severity is None:
            continue
        if is_test_path(file.path) and code in _IN_TESTS:
            continue
        if code in ("F401", "F403", "F405", "F811") and file.path.endswith("__init__.py"):
            continue  # re-exports
        line = int((record.get("location") or {}).get("row") or 1)
        end = int((record.get("end_location") or {}).get("row") or line)
        rule = Rule(code, severity, code, _CWE.get(code))
        message = str(record.get("message") or code).rstrip(".") + "."
        yield rule.at(file, line, message, end_line=min(end, line + 20))


RUFF_BUGS = Detector(
    "ruff_bugs",
    "Ruff's rules about bugs (B, F, E7, PLE, PLW, RUF, BLE, ASYNC), without the project's configuration.",
    _detect,
)
