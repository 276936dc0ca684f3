"""Events of a repair in its trace: suspects, what was tried and dropped, questions to the model, patches."""

from collections.abc import Mapping
from typing import Any

from agents.api.events import RunEvent, RunEventType

REPAIR_WORDS: Mapping[RunEventType, str] = {
    RunEventType.SUSPECTS: "suspects",
    RunEventType.SLIPS_TRIED: "tried",
    RunEventType.MODEL_ASKED: "asked",
    RunEventType.PATCH_PROPOSED: "proposed",
    RunEventType.PATCH_ACCEPTED: "accepted",
    RunEventType.PATCH_REJECTED: "dropped",
}
"""The word at the beginning of an entry."""

Row = tuple[str, str, str]
"""Word, text and style of the rows of an unfolded entry."""

_MOST = 10


def repair_summary(event: RunEvent) -> tuple[str, str]:
    """Text and style of the row of an entry."""
    data = event.data
    match event.type:
        case RunEventType.SUSPECTS:
            names = [str(one.get("name", "")) for one in _items(data, "suspects")]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return f"{', '.join(names[:3])}{more}" if names else "none", "$muted"
        case RunEventType.SLIPS_TRIED:
            passed = len(_items(data, "passed"))
            return (
                f"{data.get('tried', 0)} usual slips, {passed} pass",
                "$success" if passed else "",
            )
        case RunEventType.MODEL_ASKED:
            return f"the model to write {data.get('name', '')} anew", "$accent"
        case RunEventType.PATCH_PROPOSED:
            return _place(data, str(data.get("cannot_do") or data.get("reason") or "")), "$accent"
        case RunEventType.PATCH_ACCEPTED:
            return _place(data, str(data.get("reason") or "")), "$success"
        case _:
            return _place(data, str(data.get("reason") or "")), "$warning"


def repair_rows(event: RunEvent) -> list[Row]:
    """The rows of an entry that is unfolded."""
    data = event.data
    match event.type:
        case RunEventType.SUSPECTS:
            return [
                (
                    str(one.get("name", "")),
                    f"{one.get('file', '')}:{one.get('line', '')}" + _score(one),
                    "$foreground",
                )
                for one in _items(data, "suspects")[:_MOST]
            ]
        case RunEventType.SLIPS_TRIED:
            dropped = data.get("dropped")
            counts = dropped.items() if isinstance(dropped, dict) else ()
            rows: list[Row] = [
                ("passes", f"{one.get('what', '')} in {one.get('name', '')}", "$success")
                for one in _items(data, "passed")[:_MOST]
            ]
            rows += [("dropped", f"{count} by {check}", "$muted") for check, count in counts]
            rows += [
                (
                    "nearly",
                    f"{one.get('what', '')} in {one.get('name', '')}: fails {one.get('check', '')}. "
                    f"{one.get('detail', '')}",
                    "$muted",
                )
                for one in _items(data, "near")[:_MOST]
            ]
            return rows
        case RunEventType.MODEL_ASKED:
            return [("question", str(data.get("prompt", "")), "$foreground")]
        case RunEventType.DECISION:
            rows = [("because", str(data.get("reason", "")), "$foreground")]
            for one in _items(data, "clusters")[:_MOST]:
                text = f"{one.get('what', '')} in {one.get('name', '')}"
                rows.append((f"weight {_weight(one)}", text, "$muted"))
                if one.get("diff"):
                    rows.append(("", str(one["diff"]), "$foreground"))
            return rows
        case (
            RunEventType.PATCH_PROPOSED | RunEventType.PATCH_ACCEPTED | RunEventType.PATCH_REJECTED
        ):
            members = (("reason", "reason"), ("proof", "proof"), ("", "diff"))
            return [
                (word, str(data[name]), "$foreground") for word, name in members if data.get(name)
            ]
        case _:
            return []


def _place(data: Mapping[str, Any], text: str) -> str:
    place = f"{data['file']}:{data.get('line', '')}" if data.get("file") else ""
    return f"{place} {text}".strip()


def _score(one: Mapping[str, Any]) -> str:
    score = one.get("score")
    told = f"  suspicion {score:.2f}" if isinstance(score, int | float) else ""
    return told + ("  in the trace" if one.get("in_trace") else "")


def _weight(one: Mapping[str, Any]) -> str:
    weight = one.get("weight")
    return f"{weight:g}" if isinstance(weight, int | float) else "?"


def _items(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = data.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
