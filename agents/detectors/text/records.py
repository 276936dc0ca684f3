"""`records_against_schema`: data that breaks its JSON schema, or the written requirements on its fields."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.checklist import checklist_items, checklist_name
from agents.detectors.text.conventions import pairs_by_name
from agents.detectors.text.given import given_files, named_inputs
from agents.text.located import Located, read_located
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MISSING_FIELD = Rule("missing-field", Severity.MEDIUM, "required field that is missing")
VIOLATION = Rule("schema-violation", Severity.MEDIUM, "value that breaks the schema")
UNREADABLE = Rule("unreadable-data", Severity.HIGH, "data that is neither JSON nor YAML")
BROKEN_SCHEMA = Rule("broken-schema", Severity.HIGH, "schema that is no JSON schema")

_MAX_ERRORS = 500
# Nested repetition can take exponential time; such a pattern is not tried.
_SLOW_PATTERN = re.compile(r"\([^()]*[+*}][^()]*\)\s*[+*{]")
_FIELD = re.compile(r"`([\w.-]{1,80})`\s+(?:is|are|must be|has|have)\s+(.{1,300})")
_RANGE = re.compile(r"(?:from|between)\s+(-?\d+(?:\.\d+)?)\s+(?:to|and)\s+(-?\d+(?:\.\d+)?)")


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    inputs = named_inputs(workspace, context.inputs, context.task)
    output = given_files(workspace, inputs, "output", context.document)
    name = "schema" if "schema" in inputs else checklist_name(inputs)
    sources = given_files(workspace, inputs, name)
    if not output and not sources:
        for records, schemas in pairs_by_name(workspace, "schema"):
            located = read_located(schemas[0].text)
            if located is not None and is_schema(located.value):
                for file in records:
                    yield from check_schema(file, schemas[0], located.value, context)
        return
    for source in sources:
        located = read_located(source.text)
        schema = None if located is None else located.value
        for file in output:
            context.check_cancelled()
            if isinstance(schema, dict) and is_schema(schema):
                yield from check_schema(file, source, schema, context)
            elif file.language in ("json", "yaml", "toml") or file.text.lstrip().startswith("{"):
                yield from check_requirements(file, source.text)


def is_schema(value: Any) -> bool:
    """Whether a value looks like a JSON schema."""
    names = ("$schema", "properties", "required", "items", "allOf", "anyOf", "oneOf", "$defs")
    return isinstance(value, dict) and any(name in value for name in names)


def check_schema(
    file: SourceFile, source: SourceFile, schema: Mapping[str, Any], context: DetectorContext
) -> Iterator[Finding]:
    """The members of a file that break a JSON schema (2020-12 unless it says otherwise)."""
    from jsonschema import exceptions, validators
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    located = read_located(file.text)
    if located is None or (located.value is None and file.text.strip() not in ("null", "~")):
        yield UNREADABLE.at(file, 1, "The data is neither JSON nor YAML.")
        return
    checked, slow = _without_slow_patterns(schema)
    if slow:
        context.note(f"{source.path} has patterns with nested repetition, which are not tried.")
    kind = validators.validator_for(checked)
    registry: Registry[Any] = Registry()  # without it, references would be fetched from the network
    try:
        kind.check_schema(checked)
        errors = sorted(
            kind(checked, registry=registry).iter_errors(located.value),
            key=lambda error: [str(part) for part in error.absolute_path],
        )
    except exceptions.SchemaError as error:
        yield BROKEN_SCHEMA.at(source, 1, f"The schema is broken: {error.message:.300}")
        return
    except (Unresolvable, RecursionError, re.error, exceptions.UnknownType) as error:
        yield BROKEN_SCHEMA.at(source, 1, f"The schema cannot be applied: {error!s:.300}")
        return
    yield from _findings(file, located, errors[:_MAX_ERRORS])


def _findings(file: SourceFile, located: Located, errors: list[Any]) -> Iterator[Finding]:
    """One finding a line and rule; missing fields of one object are named together."""
    by_line: dict[tuple[str, int], list[str]] = {}
    for error in errors:
        path = tuple(error.absolute_path)
        rule = MISSING_FIELD if error.validator == "required" else VIOLATION
        name = ".".join(str(part) for part in path)
        message = f"{name}: {error.message:.200}" if name else f"{error.message:.200}"
        by_line.setdefault((rule.id, located.line(path)), []).append(message)
    for (rule_id, line), messages in by_line.items():
        rule = MISSING_FIELD if rule_id == MISSING_FIELD.id else VIOLATION
        yield rule.at(file, line, "; ".join(messages) + ".", confidence=1.0)


def _without_slow_patterns(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    found = False

    def clean(value: Any, depth: int) -> Any:
        nonlocal found
        if depth > 100:
            return value
        if isinstance(value, dict):
            kept = {}
            for name, member in value.items():
                slow = (
                    name == "pattern" and isinstance(member, str) and _SLOW_PATTERN.search(member)
                )
                if slow:
                    found = True
                else:
                    kept[name] = clean(member, depth + 1)
            return kept
        return [clean(one, depth + 1) for one in value] if isinstance(value, list) else value

    return clean(dict(schema), 0), found


def check_requirements(file: SourceFile, requirements: str) -> Iterator[Finding]:
    """Fields that break what a list says of them.

    Understood are `name` is given, is a number [from A to B], is a text [of N letters], is a list, is one of.
    """
    located = read_located(file.text)
    if located is None or not isinstance(located.value, dict):
        yield UNREADABLE.at(file, 1, "The data is neither JSON nor YAML.")
        return
    missing = []
    for item in checklist_items(requirements):
        match = _FIELD.search(item)
        if match is None:
            continue
        name, rest = match[1], match[2].lower()
        if name not in located.value or located.value[name] in ("", None, []):
            if "optional" not in rest:
                missing.append(name)
            continue
        reason = _broken(located.value[name], rest)
        if reason:
            yield VIOLATION.at(file, located.line((name,)), f"{name} {reason}.", confidence=0.9)
    if missing:
        yield MISSING_FIELD.at(file, located.line(()), f"Missing: {', '.join(missing)}.")


def _broken(value: Any, requirement: str) -> str:
    """Why a value breaks a requirement; empty if it does not, or if the requirement is not understood."""
    between = _RANGE.search(requirement)
    if re.match(r"an? (?:whole )?(?:number|integer)", requirement):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "is no number"
        if between and not float(between[1]) <= value <= float(between[2]):
            return f"is {value:g}, not from {between[1]} to {between[2]}"
    if re.match(r"an? (?:text|string)", requirement):
        if not isinstance(value, str):
            return "is no text"
        exact = re.search(r"exactly (\d{1,6}) ", requirement)
        if exact and len(value) != int(exact[1]):
            return f"has {len(value)} characters, not {exact[1]}"
    if requirement.startswith("a list"):
        if not isinstance(value, list):
            return "is no list"
        if re.search("different|unique|distinct", requirement) and _has_equal(value):
            return "has an entry twice"
    if requirement.startswith("one of") and str(value).lower() not in requirement:
        return f"is {value!r:.60}, which is not allowed"
    if re.search(r"\bversion\b", requirement) and not re.fullmatch(
        r"v?\d+(?:\.\d+)+\S*", str(value)
    ):
        return "is no version"
    return ""


def _has_equal(values: list[Any]) -> bool:
    return len({repr(value) for value in values}) < len(values)


RECORDS_AGAINST_SCHEMA = Detector(
    "records_against_schema",
    "Data that breaks its JSON schema or the written requirements on its fields.",
    _detect,
    (MISSING_FIELD, VIOLATION, UNREADABLE, BROKEN_SCHEMA),
)
