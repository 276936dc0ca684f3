"""Benchmark results in JSON that got worse between two states of a tree."""

import json
import re
from collections.abc import Iterator
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.detector import DetectorContext, Rule
from agents.workspace.workspace import Workspace

SLOWER = Rule("benchmark-regression", Severity.MEDIUM, "benchmark result got worse")
RULES = (SLOWER,)
TOLERANCE = 0.10
"""Relative change that counts as noise (start value)."""

_FILE = re.compile(r"(bench|perf|timing)", re.IGNORECASE)
_COST = re.compile(
    r"(?:^|[._])(?:seconds|time|latency|duration|ms|us|ns|s|bytes|memory|mean|median|p50|p90|p95|p99|elapsed|allocations|error_rate)(?:$|[._])",
    re.IGNORECASE,
)
_GAIN = re.compile(
    r"(?:^|[._])(?:throughput|ops|rps|qps|per_second|tokens_per_second|speedup|hit_rate|accuracy|ops_per_sec|requests_per_second)(?:$|[._])",
    re.IGNORECASE,
)


def benchmark_changes(
    base: Workspace, workspace: Workspace, context: DetectorContext
) -> Iterator[Finding]:
    """Findings about numbers whose names tell whether more is better."""
    for old in base.of("json"):
        context.check_cancelled()
        new = workspace.get(old.path)
        if new is None or not _FILE.search(old.path) or new.data == old.data:
            continue
        before, after = _numbers(old.text), _numbers(new.text)
        for name in before.keys() & after.keys():
            first, second = before[name], after[name]
            better_more = bool(_GAIN.search(name))
            if first <= 0 or not (better_more or _COST.search(name)):
                continue
            change = second / first - 1
            if (-change if better_more else change) <= TOLERANCE:
                continue
            key = name.rsplit(".", 1)[-1]
            line = next(
                (n for n, t in enumerate(new.lines, 1) if f'"{key}"' in t and f"{second:g}" in t), 0
            )
            yield SLOWER.at(
                new, line, f"{name:.120} was {first:g} and is {second:g} ({change:+.0%}).",
                severity=Severity.HIGH if abs(change) >= 0.5 else None,
                evidence=f"{name}: {second:g}", confidence=0.7,
            )  # fmt: skip


def _numbers(text: str) -> dict[str, float]:
    """All numbers of a JSON text by dotted path; list elements with a `name` are called by it."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, float] = {}
    stack: list[tuple[str, Any]] = [("", root)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{path}.{key}" if path else str(key), one) for key, one in value.items()]
        elif isinstance(value, list):
            for index, one in enumerate(value):
                name = one.get("name", index) if isinstance(one, dict) else index
                stack.append((f"{path}.{name}", one))
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            found[path] = float(value)
    return found
