"""Prints the result of `benchmarks/retrieval.py` as tables."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


def print_tables(result: Mapping[str, Any]) -> None:
    """One table for each stage that ran, and our ratios."""
    console = Console(width=120, soft_wrap=True)
    for stage, build in BUILDERS.items():
        if stage in result:
            for table in build(result[stage]):
                console.print(table)


def quality_tables(quality: Mapping[str, Any]) -> list[Table]:
    """A row for each peer and mode, and one for each comparison."""
    kinds = [kind for kind, count in quality["queries"].items() if count]
    title = f"Known items, {sum(quality['queries'].values())} queries, {quality['chunks']} chunks"
    table = _table(title, "", "hit@1", "hit@5", "nDCG@10", *(f"{kind} nDCG" for kind in kinds))
    for name, by_kind in quality["figures"].items():
        found = by_kind["all"]
        cells = [found["hit@1"], found["hit@5"], found["nDCG@10"]]
        cells += [by_kind[kind]["nDCG@10"] for kind in kinds]
        table.add_row(name, *(f"{cell:.3f}" for cell in cells))
    apart = _table("Differences, 95 % intervals", "", "hit@1", "hit@5", "nDCG@10")
    for name, compared in quality["compared"].items():
        if isinstance(compared, Mapping):
            apart.add_row(name, *(_interval(one) for one in compared.values()))
    return [table, apart]


def rate_tables(measured: Mapping[str, Any]) -> list[Table]:
    """A row for each that embeds or indexes."""
    unit = "texts/s" if "texts" in measured else "chunks/s"
    table = _table(unit, "", "best", "median", "per CPU s", "kB/s", "least cosine")
    for name, found in measured["figures"].items():
        speed = f"{found['bytes/s'] / 1e3:.0f}" if "bytes/s" in found else ""
        cosine = f"{found['least cosine']:.5f}" if "least cosine" in found else ""
        table.add_row(name, *(f"{rate:.1f}" for rate in found[unit].values()), speed, cosine)
    return [table, _ratio_table(measured["ratios"])]


def latency_tables(latency: Mapping[str, Any]) -> list[Table]:
    """A row for each peer and mode."""
    table = _table(f"A query at {latency['chunks']} chunks, ms", "", "p50", "p95", "CPU", "queries")
    for name, found in latency["figures"].items():
        cells = (f"{found[key]:.1f}" for key in ("p50 ms", "p95 ms", "median CPU ms"))
        table.add_row(name, *cells, str(found["queries"]))
    return [table]


def answer_tables(answers: Mapping[str, Any]) -> list[Table]:
    """What was cited, what was declined, and the time to the first token."""
    cited = _table("Citations", "", "")
    for name, value in answers["citations"].items():
        cited.add_row(name, _number(value))
    checked = answers["check of labelled sentences"]
    for change, value in checked["kept"].items():
        cited.add_row(f"labelled sentences kept, changed: {change}", _number(value))
    table = _table("Outcomes", "", "questions", "answered", "unsupported", "not found")
    for name, found in answers["outcomes"].items():
        shares = (found.get(key, 0.0) for key in ("answered", "unsupported", "not_found"))
        table.add_row(name, str(answers["questions"][name]), *map(_number, shares))
    first = _table("First token, ms", "", "p50", "p95", "prompt tokens", "cached")
    for name, found in answers["first token"].items():
        first.add_row(name, *map(_number, found.values()))
    return [cited, table, first]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value <= 1 else f"{value:.0f}"


def _ratio_table(ratios: Mapping[str, Mapping[str, float]]) -> Table:
    table = _table("Ratios of the best runs", "", "time", "CPU time")
    for name, ratio in ratios.items():
        table.add_row(name, f"{ratio['seconds']:.2f}", f"{ratio['cpu_seconds']:.2f}")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table


def _interval(found: Mapping[str, float]) -> str:
    return f"{found['mean']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]"


BUILDERS = {
    "quality": quality_tables,
    "embedding": rate_tables,
    "indexing": rate_tables,
    "latency": latency_tables,
    "answers": answer_tables,
}
