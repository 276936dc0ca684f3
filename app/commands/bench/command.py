"""The command: selects a benchmark and refuses contradictory options."""

from typing import Annotated, Any

import typer

from app.commands.outcome import one_sentence_errors
from app.commands.setting_options import names_of, setting_options
from app.settings.options import GROUPS


@setting_options("engine")
def bench(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats",
            min=1,
            max=100,
            help="Runs of each column, of which the best counts; by default up to 3, as a minute allows.",
        ),
    ] = None,
    prefix: Annotated[
        bool,
        typer.Option(
            "--prefix", help="Measure what 51 agents save by sharing one prefix, instead."
        ),
    ] = False,
    roofline: Annotated[
        bool,
        typer.Option(
            "--roofline",
            help="Measure the machine instead: read bandwidth, arithmetic peaks, barriers.",
        ),
    ] = False,
    *,
    flags: dict[str, Any],
) -> None:
    """Measure throughput, latency and the share of this machine's roofline.

    One stream of 128 tokens, then 1, 4, 16, 32 and 64 streams of 64 random prompt tokens and 64
    generated ones, on the engine that chat and server use. Takes a minute, or says how long: a large model
    takes longer even if each column runs once. Close other programs.
    """
    given = {**(context.obj or {}), **flags}
    _refuse_contradictions(given, repeats=repeats, prefix=prefix, roofline=roofline)
    with one_sentence_errors():
        if roofline:
            from app.commands.bench.roofline import bench_roofline

            bench_roofline(given, as_json=as_json)
        elif prefix:
            from app.commands.bench.prefix import bench_prefix

            bench_prefix(given, as_json=as_json)
        else:
            from app.commands.bench.throughput import bench_throughput

            bench_throughput(given, repeats=repeats, as_json=as_json)


def _refuse_contradictions(
    given: dict[str, Any], *, repeats: int | None, prefix: bool, roofline: bool
) -> None:
    if prefix and roofline:
        raise typer.BadParameter("--prefix and --roofline exclude each other")
    if repeats is not None and (prefix or roofline):
        option = "--prefix" if prefix else "--roofline"
        raise typer.BadParameter(f"--repeats has no effect with {option}, which runs once")
    if roofline:
        for group in GROUPS:
            for name in names_of(group):
                if name in given and name != "threads":
                    flag = f"--{name.replace('_', '-')}"
                    raise typer.BadParameter(f"{flag} has no meaning with --roofline")
