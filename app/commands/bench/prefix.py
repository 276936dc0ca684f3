"""`pravaha bench --prefix`: the savings of many agents that share one prefix."""

import json
from contextlib import AbstractContextManager
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
    from engine.benchmark.prefix_benchmark import PrefixReport
    from engine.runtime.engine import AsyncPravahaEngine


def bench_prefix(flags: dict[str, Any], *, as_json: bool) -> None:
    """Measure and print.

    Raises:
        PravahaError: a setting or the model is unusable, or prefix caching is off.
    """
    from app.settings.sources import load_settings
    from engine.api.errors import InvalidRequest
    from engine.benchmark.prefix_benchmark import PrefixBenchmark

    settings = load_settings(flags)
    if not settings.prefix_caching:
        raise InvalidRequest("bench --prefix measures prefix caching, which is switched off.")

    config = configuration(settings)

    def start(prefix_caching: bool) -> "AbstractContextManager[AsyncPravahaEngine]":
        return running_engine(replace(config, prefix_caching=prefix_caching))

    report = PrefixBenchmark(start, on_progress=show_measuring, on_estimate=show_estimate).run()
    clear_measuring()
    if as_json:
        print(json.dumps(report.to_dict()))
    else:
        _print_prefix_report(report)


def _print_prefix_report(report: "PrefixReport") -> None:
    from rich.console import Console
    from rich.table import Table

    shared, private = report.shared, report.private
    table = Table(
        title=f"{report.model['name']} · {report.agents} requests · {report.prefix_tokens:,} shared "
        f"tokens and {report.tail_tokens} of their own",
        title_justify="left",
    )
    table.add_column("prefix")
    for heading in ("seconds", "TTFT ms", "computed tokens", "hit rate", "peak blocks"):
        table.add_column(heading, justify="right")
    for name, run in (("shared", shared), ("private", private)):
        table.add_row(
            name,
            f"{run.seconds:,.2f}",
            f"{run.median_ttft_ms:,.0f}",
            f"{run.prompt_tokens:,}",
            f"{run.hit_rate:.1%}",
            f"{run.peak_blocks:,}",
        )
    console = Console()
    console.print(table)
    console.print(
        f"saved: {report.seconds_saved:,.2f} s of {private.seconds:,.2f} "
        f"({report.seconds_saved / private.seconds:.0%}); one shared prefix and {report.agents} "
        f"private tails are {report.least_blocks:,} blocks; "
        f"{report.equal_answers} of {report.agents} answers are equal"
    )
