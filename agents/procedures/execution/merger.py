"""`merger`: texts by three-way merge, lists without duplicates, mappings member by member.

Inputs: `base`, `ours`, `theirs` for texts or files; or `parts`, a list of values (otherwise all inputs).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.detectors.text.given import given_files
from agents.outputs.merge import Merge, MergeConflict
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded
from agents.text.merge import merge_texts

MAX_LINES = 20_000
_MAX_DEPTH = 40
_MAX_CONFLICTS = 500


async def run(task: AgentTask, context: ProcedureContext) -> Merge:
    """Merge the inputs of the task."""
    inputs = task.inputs
    if "ours" in inputs and "theirs" in inputs:
        if all(isinstance(inputs.get(name), dict | list) for name in ("base", "ours", "theirs")):
            merger = _ValueMerger()
            value = merger.three_way(inputs["base"], inputs["ours"], inputs["theirs"], "$", 0)
            return Merge(value=value, conflicts=merger.conflicts[:_MAX_CONFLICTS])
        texts = [_text(task, name) for name in ("base", "ours", "theirs")]
        if max(text.count("\n") for text in texts) > MAX_LINES:
            return Merge(cannot_do=f"A text has more than {MAX_LINES:,} lines.")
        return await context.in_thread(merge_three, *texts)
    parts = inputs.get("parts")
    values = list(parts) if isinstance(parts, list) else list(inputs.values())
    if len(values) < 2:
        return Merge(
            cannot_do="Give `base`, `ours` and `theirs`, or at least two `parts` to merge."
        )
    return await context.in_thread(merge_parts, values)


def merge_three(base: str, ours: str, theirs: str) -> Merge:
    """The three-way merge of texts; conflicts are marked in it and listed."""
    merged = merge_texts(base, ours, theirs)
    conflicts = [
        MergeConflict(
            place=f"line {conflict.line}",
            values=[bounded("".join(side), 4_000) for side in (conflict.ours, conflict.theirs)],
        )
        for conflict in merged.conflicts[:_MAX_CONFLICTS]
    ]
    text = "".join(merged.lines)
    if len(text) > 60_000:
        return Merge(cannot_do="The merged text is longer than 60,000 characters.")
    return Merge(text=text, conflicts=conflicts)


def merge_parts(parts: Sequence[Any]) -> Merge:
    """The parts joined: mappings by member, lists one after another, texts by paragraph, no duplicates."""
    merger = _ValueMerger()
    if all(isinstance(part, str) for part in parts):
        paragraphs = [one for part in parts for one in part.split("\n\n") if one.strip()]
        kept = merger.unique(paragraphs)
        return Merge(text=bounded("\n\n".join(kept), 60_000), duplicates=merger.duplicates)
    value = parts[0]
    if isinstance(value, list):
        value = merger.unique(value)
    for part in parts[1:]:
        value = merger.join(value, part, "$", 0)
    return Merge(
        value=value, conflicts=merger.conflicts[:_MAX_CONFLICTS], duplicates=merger.duplicates
    )


class _ValueMerger:
    """Merges JSON values and counts duplicates; the earlier value stays where two differ."""

    def __init__(self) -> None:
        self.conflicts: list[MergeConflict] = []
        self.duplicates = 0

    def unique(self, values: Sequence[Any]) -> list[Any]:
        seen: set[str] = set()
        kept = []
        for value in values:
            key = _key(value)
            if key in seen:
                self.duplicates += 1
                continue
            seen.add(key)
            kept.append(value)
        return kept

    def join(self, one: Any, other: Any, path: str, depth: int) -> Any:
        if isinstance(one, Mapping) and isinstance(other, Mapping) and depth < _MAX_DEPTH:
            joined = dict(one)
            for name, value in other.items():
                place = f"{path}.{name}"
                joined[name] = (
                    self.join(joined[name], value, place, depth + 1) if name in joined else value
                )
            return joined
        if isinstance(one, list) and isinstance(other, list):
            return self.unique([*one, *other])
        if _key(one) == _key(other):
            self.duplicates += 1
        elif one in (None, "", [], {}):
            return other
        elif other not in (None, "", [], {}):
            self._conflict(path, one, other)
        return one

    def three_way(self, base: Any, ours: Any, theirs: Any, path: str, depth: int) -> Any:
        """Member by member; a member changed on one side takes that side's value, or is removed."""
        if _key(ours) == _key(theirs) or _key(theirs) == _key(base):
            return ours
        if _key(ours) == _key(base):
            return theirs
        if all(isinstance(one, Mapping) for one in (base, ours, theirs)) and depth < _MAX_DEPTH:
            merged = {}
            for name in dict.fromkeys([*ours, *theirs, *base]):
                before, mine, other = (side.get(name, _ABSENT) for side in (base, ours, theirs))
                value = self.three_way(before, mine, other, f"{path}.{name}", depth + 1)
                if value is not _ABSENT:
                    merged[name] = value
            return merged
        self._conflict(path, ours, theirs)
        return ours

    def _conflict(self, path: str, one: Any, other: Any) -> None:
        shown = [
            "(removed)" if side is _ABSENT else bounded(_key(side), 4_000) for side in (one, other)
        ]
        self.conflicts.append(MergeConflict(place=bounded(path, 300), values=shown))


_ABSENT = object()


def _key(value: Any) -> str:
    if value is _ABSENT:
        return "\0absent"
    if isinstance(value, str):
        return json.dumps(" ".join(value.split()), ensure_ascii=False)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)


def _text(task: AgentTask, name: str) -> str:
    files = given_files(task.workspace, task.inputs, name)
    return "\n".join(file.text for file in files)
