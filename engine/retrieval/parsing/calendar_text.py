"""`calendar_text`: what, when and where, of the entries of a calendar (iCalendar), such as an invitation."""

import re

from engine.retrieval.parsing.content_lines import content_lines, unescaped

_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})?(Z)?)?")
_ZONE = re.compile(r";TZID=\"?([^;\"]+)", re.IGNORECASE)
_COMMON_NAME = re.compile(r";CN=\"?([^;\"]+)", re.IGNORECASE)
_SHOWN = {
    "SUMMARY": "Event",
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "RRULE": "Repeats",
    "LOCATION": "Place",
    "ORGANIZER": "Organizer",
    "STATUS": "Status",
    "DESCRIPTION": "Description",
}
_ENTRIES = frozenset(["VEVENT", "VTODO", "VJOURNAL"])


def calendar_text(text: str) -> str:
    """The entries, one line a property."""
    entries: list[str] = []
    found: dict[str, str] = {}
    inside: list[str] = []
    for name, parameters, value in content_lines(text):
        if name == "BEGIN":
            inside.append(value.strip().upper())
        elif name == "END" and inside:
            if inside.pop() in _ENTRIES:
                entries.append(
                    "\n".join(f"{_SHOWN[one]}: {found[one]}" for one in _SHOWN if one in found)
                )
                found = {}
        elif name in _SHOWN and inside and inside[-1] in _ENTRIES:
            found[name] = _value(name, parameters, value)
    return "\n\n".join(filter(None, entries))


def _value(name: str, parameters: str, value: str) -> str:
    if name in ("DTSTART", "DTEND", "DUE"):
        return _moment(value, parameters)
    if name == "ORGANIZER":
        common = _COMMON_NAME.search(parameters)
        address = re.sub(r"\Amailto:", "", value, flags=re.IGNORECASE)
        return f"{unescaped(common[1])} <{address}>" if common else address
    return unescaped(value)


def _moment(value: str, parameters: str) -> str:
    match = _DATE.fullmatch(value.strip())
    if match is None:
        return unescaped(value)
    year, month, day, hour, minute, _, utc = match.groups()
    date = f"{year}-{month}-{day}"
    if hour is None:
        return date
    zone = _ZONE.search(parameters)
    return f"{date} {hour}:{minute}" + (" UTC" if utc else f" {zone[1]}" if zone else "")
