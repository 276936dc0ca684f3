"""`extractor`: values for the fields of a JSON schema, each with its place in the source.

A field's value is looked for after its name (`Total: 345.00`, `Invoice 2024-0871`), then by its kind alone,
where the text has only one value of that kind. Without a schema, all dates, amounts and addresses are listed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.outputs.extraction import Extraction, ValueSpan
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded, source_text
from agents.text.sentences import line_at, line_starts
from agents.text.values import FoundValue, Kind, values_of
from agents.text.words import stem, words

MAX_CHARS = 200_000
_MAX_FIELDS = 200
_MAX_VALUES = 200
_NEAR_CHARS = 80
_LISTED: tuple[Kind, ...] = ("date", "money", "email", "url", "phone", "id", "name")
_BY_FORMAT: Mapping[str, Kind] = {
    "date": "date", "date-time": "date", "email": "email", "uri": "url", "url": "url",
}  # fmt: skip
_BY_NAME: Sequence[tuple[str, Kind]] = (
    (r"\b(?:date|dated|due|day|deadline|birthday|since|until|on)\b", "date"),
    (r"\b(?:e-?mail|mail)\b", "email"),
    (r"\b(?:url|link|website|homepage)\b", "url"),
    (r"\b(?:phone|telephone|tel|fax|mobile)\b", "phone"),
    (r"\b(?:price|total|amount|cost|fee|salary|sum|money|subtotal|tax)\b", "money"),
    (r"\b(?:id|number|no|code|invoice|reference|order|serial|sku)\b", "id"),
    (r"\b(?:name|person|contact|author|company|customer|seller|buyer|client|vendor)\b", "name"),
)


async def run(task: AgentTask, context: ProcedureContext) -> Extraction:
    """Extract the fields of the schema."""
    text = source_text(task)
    if not text.strip():
        return Extraction(cannot_do="There is no text to extract from.")
    if len(text) > MAX_CHARS:
        return Extraction(cannot_do=f"The text is longer than {MAX_CHARS:,} characters.")
    schema = task.inputs.get("schema")
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        return await context.in_thread(extract_fields, text, schema)
    return await context.in_thread(extract_all, text)


def extract_all(text: str) -> Extraction:
    """All values of the known kinds, and of `name: value` lines."""
    starts = line_starts(text)
    values: dict[str, Any] = {}
    spans: list[ValueSpan] = []
    for kind in _LISTED:
        found = values_of(text, kind)[:_MAX_VALUES]
        if found:
            values[f"{kind}s" if kind != "money" else kind] = [one.value for one in found]
            spans += [_span(kind, one, text, starts) for one in found]
    for one in values_of(text, "labelled")[:_MAX_VALUES]:
        if one.label not in values:
            values[bounded(one.label, 300)] = one.value
            spans.append(_span(one.label, one, text, starts))
    if not values:
        return Extraction(cannot_do="The text has no date, number, address, name or `name: value`.")
    return Extraction(values=values, spans=spans[:2_000])


def extract_fields(text: str, schema: Mapping[str, Any]) -> Extraction:
    """The values of a schema's fields; a field without a value is in `missing` if it is required."""
    starts = line_starts(text)
    values: dict[str, Any] = {}
    spans: list[ValueSpan] = []
    required = schema.get("required")
    missing = []
    for name, field in list(schema["properties"].items())[:_MAX_FIELDS]:
        found = _field(text, str(name), field if isinstance(field, Mapping) else {})
        if found is None:
            if isinstance(required, list) and name in required:
                missing.append(bounded(str(name), 300))
            continue
        value, places = found
        values[bounded(str(name), 300)] = value
        spans += [_span(str(name), place, text, starts) for place in places]
    reason = "" if values else "The text has no value for any field of the schema."
    return Extraction(values=values, spans=spans[:2_000], missing=missing, cannot_do=reason)


def _field(text: str, name: str, field: Mapping[str, Any]) -> tuple[Any, list[FoundValue]] | None:
    choices = field.get("enum")
    if isinstance(choices, list):
        return _chosen(text, choices)
    many = field.get("type") == "array"
    items = field.get("items")
    described = items if many and isinstance(items, Mapping) else field
    label = _label(name)
    kind = _kind(described, label)
    if many:
        found = values_of(text, kind)[:_MAX_VALUES] if kind else []
        return ([_typed(one.value, described) for one in found], found) if found else None
    place = _labelled(text, label, kind) or _near(text, label, kind) or _only(text, kind)
    if place is None:
        return None
    pattern = field.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, str(place.value)):
        return None
    return _typed(place.value, described), [place]


def _label(name: str) -> str:
    return (
        re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
        .replace("_", " ")
        .replace("-", " ")
        .lower()
        .strip()
    )


def _kind(field: Mapping[str, Any], label: str) -> Kind | None:
    by_format = _BY_FORMAT.get(str(field.get("format")))
    if by_format:
        return by_format
    if field.get("type") == "integer":
        return "integer"
    if field.get("type") == "number":
        return "number"
    return next((kind for pattern, kind in _BY_NAME if re.search(pattern, label)), None)


def _labelled(text: str, label: str, kind: Kind | None) -> FoundValue | None:
    """The value of a line `label: value`, narrowed to its kind."""
    wanted = {stem(word.text) for word in words(label)}
    for line in values_of(text, "labelled"):
        own = {stem(word.text.lower()) for word in words(line.label)}
        if not wanted or not (wanted <= own or own <= wanted):
            continue
        inside = values_of(text[line.start : line.end], kind) if kind else []
        if not inside:
            return line if kind in (None, "id", "name") else None
        one = inside[0]
        return FoundValue(one.value, line.start + one.start, line.start + one.end, line.label)
    return None


def _near(text: str, label: str, kind: Kind | None) -> FoundValue | None:
    """The first value of a kind shortly after the label's last word, or just before it."""
    if kind is None:
        return None
    found = values_of(text, kind)
    wanted = [stem(word.text) for word in words(label)]
    marks = [word for word in words(text) if wanted and stem(word.text.lower()) == wanted[-1]]
    for mark in marks:
        end = mark.start + len(mark.text)
        after = [one for one in found if end <= one.start <= end + _NEAR_CHARS]
        stop = re.search(r"[.;!?](?:\s|$)", text[end : end + _NEAR_CHARS])
        after = [one for one in after if stop is None or one.start < end + stop.start()]
        if after:
            return after[0]
    for mark in marks:
        before = [one for one in found if one.end <= mark.start <= one.end + 2]
        if before:
            return before[-1]
    return None


def _only(text: str, kind: Kind | None) -> FoundValue | None:
    """The value of a kind, if the text has exactly one."""
    found = values_of(text, kind) if kind else []
    return found[0] if len({str(one.value) for one in found}) == 1 else None


def _chosen(text: str, choices: Sequence[Any]) -> tuple[Any, list[FoundValue]] | None:
    for choice in choices[:_MAX_FIELDS]:
        match = re.search(rf"(?<!\w){re.escape(str(choice)[:200])}(?!\w)", text, re.IGNORECASE)
        if match:
            return choice, [FoundValue(choice, match.start(), match.end())]
    return None


def _typed(value: Any, field: Mapping[str, Any]) -> Any:
    """The value in the field's type."""
    if isinstance(value, dict) and field.get("type") in ("number", "integer", "string"):
        value = value["amount"]
    return str(value) if field.get("type") == "string" else value


def _matches(pattern: str, value: str) -> bool:
    """Whether a short value matches a pattern of the schema; an invalid or slow one matches all."""
    if len(value) > 200 or re.search(r"\([^()]*[+*}][^()]*\)\s*[+*{]", pattern):
        return True
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _span(field: str, found: FoundValue, text: str, starts: list[int]) -> ValueSpan:
    return ValueSpan(
        field=bounded(field, 300),
        start=found.start,
        end=found.end,
        line=line_at(starts, found.start),
        quote=bounded(text[found.start : found.end], 300),
    )
