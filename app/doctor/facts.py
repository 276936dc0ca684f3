"""The doctor's report: sections of facts, some of them with advice."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "note", "problem"]
"""`note`: something optional is missing. `problem`: Pravāha does not work in this state."""

JsonValue = str | int | float | bool | list[Any] | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the report.

    Attributes:
        key: its name in JSON.
        label: its name in text.
        value: its value in JSON.
        text: its value in text.
        level: its severity.
        advice: what to do, one sentence; empty if nothing.
    """

    key: str
    label: str
    value: JsonValue
    text: str
    level: Level = "ok"
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Facts about one subject."""

    key: str
    title: str
    facts: tuple[Fact, ...]


def to_json(sections: list[Section]) -> dict[str, Any]:
    """The report as one object: section → fact → value, and the advice as a list."""
    report: dict[str, Any] = {
        section.key: {fact.key: fact.value for fact in section.facts} for section in sections
    }
    report["advice"] = [
        {key: value for key, value in asdict(fact).items() if key in ("key", "level", "advice")}
        for section in sections
        for fact in section.facts
        if fact.level != "ok"
    ]
    return report


def to_lines(sections: list[Section]) -> list[str]:
    """The report as text without colours and boxes."""
    width = max(len(fact.label) for section in sections for fact in section.facts)
    lines: list[str] = []
    for section in sections:
        lines += ([""] if lines else []) + [section.title]
        for fact in section.facts:
            lines.append(f"  {fact.label:<{width}}  {fact.text}")
            if fact.advice:
                word = "problem" if fact.level == "problem" else "note"
                lines.append(f"  {'':<{width}}  {word}: {fact.advice}")
    return lines
