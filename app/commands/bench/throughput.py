"""`pravaha bench`: throughput and latency by the number of streams."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.commands.bench.setup import (
    clear_measuring,
    configuration,
    running_engine,
    show_estimate,
    show_measuring,
)

if TYPE_CHECKING:
    from engine.benchmark.self_benchmark import BenchmarkReport


def bench_throughput(flags: dict[str, Any], *, repeats: int | None, as_json: bool) -> None:
    """Measure and print.

    Raises:
        PravahaError: a setting or the model is unusable, or the engine has too few rows.
    """
    from app.settings.sources import load_settings
    from engine.api.errors import InvalidRequest
    from engine.benchmark.self_benchmark import BATCHES, SelfBenchmark

    settings = load_settings(flags)
    if settings.max_num_seqs < max(BATCHES):
        raise InvalidRequest(f"bench runs {max(BATCHES)} streams: raise --max-num-seqs to that.")
    # Prompts repeat from run to run: with prefix caching their prefill would not be measured.
    config = replace(configuration(settings), prefix_caching=False)
    with running_engine(config) as engine:
        report = SelfBenchmark(
            engine, repeats=repeats, on_progress=show_measuring, on_estimate=show_estimate
        ).run()
    clear_measuring()
    if as_json:
        print(json.dumps(report.to_dict()))
    else:
        _print_table(report)


def _print_table(report: "BenchmarkReport") -> None:
    from rich.console import Console
    from rich.table import Table

    model = report.model
    table = Table(
        title=f"{model['name']} · {model['weight_format']} · KV {model['kv_dtype']} · "
        f"{model['dispatch']} · {model['threads']} threads · best of {report.repeats}",
        title_justify="left",
    )
    table.add_column("streams")
    for heading in ("prefill tok/s", "decode tok/s", "TTFT ms", "ITL ms", "roofline"):
        table.add_column(heading, justify="right")
    for name, column in report.columns.items():
        prefill = column.prefill_throughput
        table.add_row(
            name,
            "–" if prefill is None else f"{prefill:,.0f}",
            f"{column.output_throughput:,.1f}",
            f"{column.median_ttft_ms:,.1f}",
            f"{column.mean_itl_ms:,.2f}",
            f"{column.roofline_share:.0%}",
        )
    console = Console()
    console.print(table)
    for size, rate in report.roofline.read_bytes_per_second.items():
        console.print(f"read bandwidth at {size / 1e6:,.0f} MB: {rate / 1e9:,.1f} GB/s")
    if report.roofline.int8_ops_per_second is not None:
        console.print(f"int8 dot product: {report.roofline.int8_ops_per_second / 1e12:,.2f} TOPS")
