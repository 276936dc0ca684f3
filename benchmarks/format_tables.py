"""Markdown tables of the parts of a result of `formats.py`, as in docs/performance.md."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.format_columns import BASELINE, DECODE, PREFILL
from benchmarks.process_memory import FIELDS

Figures = Mapping[str, float | None] | None
HEADINGS = {
    "1x128": "1 × 128",
    "4x128": "4 × 128",
    "16x128": "16 × 128",
    "64x128": "64 × 128",
    "1x4096": "1 × 4,096",
    "1x8192": "1 × 8,192",
    "4x8192": "4 × 8,192",
    "prefill512": "prefill 512",
    "prefill4096": "prefill 4,096",
}
MB = 1e6


def tables(parts: Sequence[Mapping[str, Any]]) -> str:
    """All tables: throughput and memory, and where the figures come from."""
    merged = newest(parts)
    blocks = [throughput_table(merged), memory_table(merged), origins(parts)]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def newest(parts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One part for each shape and format: every column from the last part that has it."""
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for part in parts:
        into = merged.setdefault((part["shape"], part["format"]), {"columns": {}})
        columns = into["columns"] | part["columns"]
        into.update(part)
        into["columns"] = columns
    return list(merged.values())


def throughput_table(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tokens per second of every engine, ratio to the best peer and share of the roofline."""
    columns = [
        name for name in (*DECODE, *PREFILL) if any(name in part["columns"] for part in parts)
    ]
    rows: list[list[str]] = []
    for part in parts:
        measured = {name: part["columns"][name] for name in columns if name in part["columns"]}
        if not measured:
            continue
        first = title(part)
        for name in engine_names(measured.values()):
            cells = [cell(of(measured, c, "tokens_per_second", name)) for c in columns]
            rows.append([first, name, *cells])
            first = ""
        ratios = [cell(of(measured, c, "ratio_to_best_peer"), "{:.2f}") for c in columns]
        shares = [cell(of(measured, c, "share_of_roofline"), "{:.0%}") for c in columns]
        samples = [str(sample_count(measured.get(c))) for c in columns]
        rows += [
            ["", "÷ best peer", *ratios],
            ["", "of the roofline", *shares],
            ["", "samples", *samples],
        ]
    return markdown(["", "", *(HEADINGS[column] for column in columns)], rows) if rows else []


def memory_table(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Memory of every engine in MB."""
    rows = []
    for part in parts:
        first = title(part)
        for name, held in part["columns"].get("memory", {}).items():
            rows.append([first, name, *(f"{held[key] / MB:,.0f}" for key in FIELDS)])
            first = ""
    headings = ["peak MB", "resident MB", "anonymous", "mapped files"]
    return markdown(["", "", *headings], rows) if rows else []


def origins(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Machine, commit and commands of the parts; nothing for parts without an origin."""
    found = [
        f"{part['date']}, {part['machine']['cpu']} (family {part['machine']['family']} model "
        f"{part['machine']['model']}), commit {part['commit']}: `{part['command']}`"
        for part in parts
        if "machine" in part
    ]
    return list(dict.fromkeys(found))


def title(part: Mapping[str, Any]) -> str:
    """Shape, format, and the sizes of the file and of the packed weights."""
    packed = part.get("packed_bytes")
    sizes = f"{part['file_bytes'] / MB:,.0f} MB" + (
        f", packed {packed / MB:,.0f}" if packed else ""
    )
    return f"{part['shape']} {part['format'].upper()}, {sizes}"


def engine_names(columns: Iterable[Mapping[str, Any]]) -> list[str]:
    """The engines that have figures, ours first, a baseline next."""
    names = dict.fromkeys(name for column in columns for name in column["tokens_per_second"])
    return sorted(names, key=lambda name: (not name.startswith("pravaha"), BASELINE in name))


def of(measured: Mapping[str, Any], column: str, *keys: str) -> Figures:
    """A figure of a column, or None."""
    found = measured.get(column)
    for key in keys:
        found = (found or {}).get(key)
    return found


def sample_count(column: Mapping[str, Any] | None) -> int:
    """Samples of each engine in a column: equally many."""
    return min(map(len, column["seconds"].values())) if column else 0


def cell(figures: Figures, shown: str = "{:,.0f}") -> str:
    """Best (median)."""
    if not figures or figures.get("best") is None:
        return "–"
    best, middle = figures["best"], figures.get("median")
    return f"{shown.format(best)} ({'–' if middle is None else shown.format(middle)})"


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
