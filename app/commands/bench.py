"""`pravaha bench`: what this machine does with this model, beside its measured roofline."""

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.outcome import one_sentence_errors
from app.commands.setting_options import setting_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.observability.prefix_benchmark import PrefixReport
    from engine.observability.self_benchmark import BenchmarkReport


@setting_options("engine")
def bench(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats", min=1, max=100, help="Runs of each column, 3 without it; best reported."
        ),
    ] = None,
    prefix: Annotated[
        bool,
        typer.Option("--prefix", help="Measure instead what sharing one prefix saves 51 agents."),
    ] = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Measure throughput, latency and the share of this machine's roofline.

    One stream of 128 tokens, then 1, 4, 16, 32 and 64 streams of 64 random prompt tokens and 64
    new ones, through the same engine that chats and serves. Takes a minute; close other programs.
    """
    if prefix:
        if repeats is not None:
            raise typer.BadParameter("--repeats is not for --prefix, which runs once")
        _bench_prefix({**(context.obj or {}), **flags}, as_json=as_json)
        return
    with one_sentence_errors():
        from app.commands.fetch_bar import fetch_bar
        from app.runtime import engine_config
        from app.settings_sources import load_settings
        from engine.engine import AsyncPravahaEngine
        from engine.errors import InvalidRequest
        from engine.observability.self_benchmark import BATCHES, SelfBenchmark

        settings = load_settings({**(context.obj or {}), **flags})
        if settings.max_num_seqs < max(BATCHES):
            raise InvalidRequest(
                f"bench runs {max(BATCHES)} streams: raise --max-num-seqs to that."
            )
        with fetch_bar() as progress:
            config = engine_config(settings, progress)
        # Prompts repeat from run to run: found in the cache, their prefill would not be measured.
        # And no dummy steps run beside what is measured.
        engine = AsyncPravahaEngine(replace(config, prefix_caching=False, swap_bytes=0), probes=())
        engine.start()
        try:
            engine.wait_ready(timeout=None)
            report = SelfBenchmark(engine, repeats=repeats or 3, on_progress=_say).run()
        finally:
            engine.shutdown()
        if as_json:
            print(json.dumps(report.to_dict()))
        else:
            _print_table(report)


def _bench_prefix(flags: dict[str, Any], *, as_json: bool) -> None:
    with one_sentence_errors():
        from app.commands.fetch_bar import fetch_bar
        from app.runtime import engine_config
        from app.settings_sources import load_settings
        from engine.engine import AsyncPravahaEngine
        from engine.errors import InvalidRequest
        from engine.observability.prefix_benchmark import PrefixBenchmark

        settings = load_settings(flags)
        if not settings.prefix_caching:
            raise InvalidRequest("bench --prefix measures prefix caching: leave it on.")
        with fetch_bar() as progress:
            config = engine_config(settings, progress)

        @contextmanager
        def start(prefix_caching: bool) -> "Iterator[AsyncPravahaEngine]":
            # What an earlier run left in the swap tier would be found by this one.
            engine = AsyncPravahaEngine(
                replace(config, prefix_caching=prefix_caching, swap_bytes=0)
            )
            engine.start()
            try:
                yield engine
            finally:
                engine.shutdown()

        report = PrefixBenchmark(start, on_progress=_say).run()
        if as_json:
            print(json.dumps(report.to_dict()))
        else:
            _print_prefix_report(report)


def _print_prefix_report(report: "PrefixReport") -> None:
    from rich.console import Console
    from rich.table import Table

    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
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


def _say(column: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[Kmeasuring {column} …", end="", file=sys.stderr, flush=True)


def _print_table(report: "BenchmarkReport") -> None:
    from rich.console import Console
    from rich.table import Table

    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    model = report.model
    table = Table(
        title=f"{model['name']} · {model['weight_format']} · KV {model['kv_dtype']} · "
        f"{model['dispatch']} · {model['threads']} threads",
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
