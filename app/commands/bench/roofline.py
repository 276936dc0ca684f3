"""`pravaha bench --roofline`: measured limits of the machine, without a model."""

import json
from typing import TYPE_CHECKING, Any

from app.commands.bench.setup import clear_measuring, show_measuring

if TYPE_CHECKING:
    from rich.table import Table

    from engine.benchmark.roofline import RooflineReport


def bench_roofline(flags: dict[str, Any], *, as_json: bool) -> None:
    """Measure and print.

    Raises:
        PravahaError: a setting is unusable, or that many threads are not available.
    """
    from app.settings.sources import load_settings
    from engine.api.errors import InvalidRequest
    from engine.benchmark.roofline import FOOTPRINTS, measure_roofline
    from engine.memory.host import available_memory

    settings = load_settings(flags)
    room = available_memory() // 2
    fitting = tuple(nbytes for nbytes in FOOTPRINTS if nbytes <= room)
    try:
        report = measure_roofline(settings.threads, footprints=fitting, on_progress=show_measuring)
    except (ValueError, MemoryError) as error:
        raise InvalidRequest(str(error)) from None
    clear_measuring()
    if as_json:
        print(json.dumps(report.to_dict()))
    else:
        _print(report)


def _print(report: "RooflineReport") -> None:
    from rich.console import Console

    console = Console()
    console.print(_bandwidths(report))
    console.print(_peaks(report))
    console.print(
        f"a barrier among {report.threads}: {1e6 * report.barrier_seconds:,.2f} µs; "
        f"dispatch level: {report.dispatch}"
    )


def _bandwidths(report: "RooflineReport") -> "Table":
    from rich.table import Table

    rates = {(b.nbytes, b.threads, b.huge_pages): b.bytes_per_second for b in report.bandwidths}
    kinds = sorted({key[1:] for key in rates}, key=lambda kind: (kind[0], not kind[1]))
    table = Table(title="read bandwidth, GB/s", title_justify="left")
    table.add_column("footprint", justify="right")
    for threads, huge in kinds:
        table.add_column(
            f"{_threads(threads)}, {'huge' if huge else 'small'} pages", justify="right"
        )
    for nbytes in dict.fromkeys(b.nbytes for b in report.bandwidths):
        cells = (f"{rates[nbytes, *kind] / 1e9:,.1f}" for kind in kinds)
        table.add_row(f"{nbytes / 1e6:,.0f} MB", *cells)
    return table


def _peaks(report: "RooflineReport") -> "Table":
    from rich.table import Table

    counts = sorted({1, report.threads})
    table = Table(title="arithmetic, billion operations a second", title_justify="left")
    table.add_column("instruction")
    table.add_column("type")
    for count in counts:
        table.add_column(_threads(count), justify="right")
    for peak in report.peaks:
        rates = [peak.ops_per_second.get(count) for count in counts]
        cells = ("not measured" if rate is None else f"{rate / 1e9:,.0f}" for rate in rates)
        table.add_row(peak.instruction, peak.data_type, *cells)
    return table


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"
