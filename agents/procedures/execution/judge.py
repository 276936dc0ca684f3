"""`judge`: candidates in order by checks: hard ones first (schema, length, required and forbidden terms).

Inputs: `candidates` (list or mapping of texts or values), and optionally `schema`, `required`, `forbidden`,
`min_words`, `max_words`. Soft checks: the terms of the task that a candidate covers, and its weaknesses.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from agents.detectors.detector import DetectorContext
from agents.detectors.text.draft import check_draft
from agents.detectors.text.records import check_schema
from agents.outputs.ranking import CheckResult, RankedCandidate, Ranking
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded
from agents.text.words import terms, words
from agents.workspace.source_file import SourceFile

MAX_CANDIDATES = 100
_NAMED = re.compile(
    r"\b(?:at most|under|max(?:imum)?|up to|no more than)\s+(\d{1,6})\s+words\b", re.IGNORECASE
)
_AT_LEAST = re.compile(
    r"\b(?:at least|min(?:imum)?|no fewer than)\s+(\d{1,6})\s+words\b", re.IGNORECASE
)
_FILLER = frozenset(
    terms("choose judge rank score compare best better candidate answer select pick most")
)


async def run(task: AgentTask, context: ProcedureContext) -> Ranking:
    """Rank the candidates of the task."""
    candidates = _candidates(task)
    if len(candidates) < 2:
        return Ranking(cannot_do="Give at least two candidates to rank, as `candidates`.")
    return await context.in_thread(rank, candidates[:MAX_CANDIDATES], task)


def rank(candidates: list[str], task: AgentTask) -> Ranking:
    """The candidates, best first: those that pass all hard checks, then by score, then as given."""
    judged = []
    for index, text in enumerate(candidates):
        checks = [*_hard_checks(text, task), *_soft_checks(text, task)]
        judged.append(
            RankedCandidate(
                index=index,
                text=bounded(text, 4_000),
                score=_score(checks, text, task),
                checks=checks,
            )
        )
    judged.sort(key=lambda one: (not _passes(one), -one.score, one.index))
    first, second = judged[:2]
    tied = _passes(first) == _passes(second) and abs(first.score - second.score) < 1e-6
    return Ranking(candidates=judged, tied=tied)


def _passes(candidate: RankedCandidate) -> bool:
    return all(check.passed for check in candidate.checks if check.hard)


def _score(checks: list[CheckResult], text: str, task: AgentTask) -> float:
    """60 for the share of the task's terms, 40 for the absence of weaknesses; 0 if a hard check fails."""
    if any(check.hard and not check.passed for check in checks):
        return 0.0
    weaknesses = sum(1 for _ in check_draft(_file(text)))
    per_sentence = weaknesses / max(1, len(words(text)) / 15)
    return round(60 * _coverage(text, task) + 40 * max(0.0, 1 - per_sentence), 3)


def _coverage(text: str, task: AgentTask) -> float:
    wanted = set(terms(_NAMED.sub("", task.text))) - _FILLER
    return len(wanted & set(terms(text))) / len(wanted) if wanted else 1.0


def _hard_checks(text: str, task: AgentTask) -> list[CheckResult]:
    checks = [_check("not empty", bool(text.strip()), hard=True)]
    count = len(words(text))
    for name, pattern in (("max_words", _NAMED), ("min_words", _AT_LEAST)):
        match = pattern.search(task.text)
        limit = task.inputs.get(name, int(match[1]) if match else None)
        if isinstance(limit, int):
            holds = count <= limit if name == "max_words" else count >= limit
            checks.append(_check(name, holds, f"{count} words, limit {limit}", hard=True))
    for name, present in (("required", True), ("forbidden", False)):
        for term in _strings(task.inputs.get(name)):
            found = term.casefold() in text.casefold()
            checks.append(_check(f"{name}: {term}", found == present, hard=True))
    schema = task.inputs.get("schema")
    if isinstance(schema, dict):
        errors = list(
            check_schema(_file(text), SourceFile("schema", b""), schema, DetectorContext())
        )
        detail = errors[0].message if errors else ""
        checks.append(_check("schema", not errors, detail, hard=True))
    return checks


def _soft_checks(text: str, task: AgentTask) -> list[CheckResult]:
    share = _coverage(text, task)
    weaknesses = [finding.rule for finding in check_draft(_file(text))]
    return [
        _check("covers the task", share >= 0.5, f"{share:.0%} of its terms"),
        _check("no weaknesses", not weaknesses, ", ".join(sorted(set(weaknesses)))),
    ]


def _check(name: str, passed: bool, detail: str = "", *, hard: bool = False) -> CheckResult:
    return CheckResult(
        name=bounded(name, 300), passed=passed, hard=hard, detail=bounded(detail, 300)
    )


def _file(text: str) -> SourceFile:
    return SourceFile("candidate", text.encode("utf-8", "replace"))


def _strings(value: Any) -> list[str]:
    return [str(one) for one in value[:50]] if isinstance(value, list) else []


def _candidates(task: AgentTask) -> list[str]:
    given = task.inputs.get("candidates")
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list):
        return [
            one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, default=repr)
            for one in given
        ]
    if task.document:
        return [part.strip() for part in re.split(r"\n-{3,}\n", task.document) if part.strip()]
    return [file.text for file in task.workspace]
