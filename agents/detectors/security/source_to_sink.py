"""The detector `source_to_sink`: data of outsiders at dangerous calls of Python programs."""

from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.per_file import python_files
from agents.detectors.audit.python_module import is_test_path
from agents.detectors.detector import Detector, DetectorContext
from agents.detectors.security.nosql import code_in_queries
from agents.detectors.security.taint.program import Program
from agents.detectors.security.taint.rules import RULES, advice
from agents.detectors.security.taint.summary import Hit
from agents.detectors.security.taint.value import SinkKind, Trust
from agents.detectors.security.xml_features import entities_switched_on
from agents.workspace.workspace import Workspace

_SCALE = list(Severity)
_CONFIDENCE = {Trust.OPAQUE: 0.4, Trust.PARAMETER: 0.6, Trust.LOCAL: 0.75, Trust.USER: 0.95}
_LOCAL_KINDS = frozenset(
    [
        SinkKind.SQL,
        SinkKind.COMMAND,
        SinkKind.CODE,
        SinkKind.DESERIALIZE,
        SinkKind.TEMPLATE,
        SinkKind.LDAP,
        SinkKind.XPATH,
        SinkKind.HTML,
    ]
)
"""Kinds that are a defect even where the person at the terminal supplies the data."""


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    modules = list(python_files(workspace, context))
    for module in modules:
        yield from code_in_queries(module)
        yield from entities_switched_on(module)
    program = Program(modules, context.check_cancelled)
    worst: dict[tuple[str, int, SinkKind], Hit] = {}
    for hit in program.hits():
        key = (hit.path, hit.line, hit.kind)
        known = worst.get(key)
        if known is None or _rank(hit) > _rank(known):
            worst[key] = hit
    for hit in worst.values():
        finding = _finding(workspace, program, hit)
        if finding is not None:
            yield finding


def _rank(hit: Hit) -> tuple[int, bool, list[str]]:
    return hit.trust, hit.built, sorted(origin.text for origin in hit.origins)


def _finding(workspace: Workspace, program: Program, hit: Hit) -> Finding | None:
    file = workspace.get(hit.path)
    trust = hit.trust
    if (
        file is None
        or is_test_path(hit.path)
        or (not hit.built and (hit.raw is None or trust < hit.raw))
    ):
        return None
    if trust is Trust.LOCAL and hit.kind not in _LOCAL_KINDS:
        return None
    severity = RULES[hit.kind].severity
    if trust < Trust.USER and hit.kind in (
        SinkKind.PATH,
        SinkKind.URL,
        SinkKind.REDIRECT,
        SinkKind.LOG,
        SinkKind.REGEX,
    ):
        return None
    if trust is Trust.PARAMETER and program.only_constants_reach(hit):
        if program.is_private(hit):
            return None
        severity = Severity.LOW
    elif trust in (Trust.LOCAL, Trust.PARAMETER):
        severity = _lower(severity, 1)
    elif trust is Trust.OPAQUE:
        severity = _lower(severity, 2)
    origin = max(hit.origins, key=lambda one: (one.trust, -one.line, one.text))
    return RULES[hit.kind].at(
        file,
        hit.line,
        f"{_SOURCE[trust].format(origin.text)} reaches {hit.call}. {advice(hit.kind)}",
        end_line=hit.end_line,
        severity=severity,
        confidence=_CONFIDENCE[trust],
    )


_SOURCE = {
    Trust.USER: "Data of a client ({})",
    Trust.LOCAL: "Input of the caller ({})",
    Trust.PARAMETER: "The parameter {}, unchecked here,",
    Trust.OPAQUE: "A string that is not constant ({})",
}


def _lower(severity: Severity, steps: int) -> Severity:
    return _SCALE[max(1, severity.rank - steps)]


SOURCE_TO_SINK = Detector(
    name="source_to_sink",
    description="Follows data of clients, callers and parameters to SQL, shell, code, template, XML, path and URL calls.",
    detect=_detect,
    rules=RULES,
)
