"""Runs `pravaha agents profile`: progress on standard error, the table on standard output."""

import asyncio
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.table import Table
from rich.text import Text

from agents.model.profile import PASS, PASS_OUTPUT
from agents.model.profile_record import SUITES, ProfileRecord, packaged_file, save_record
from agents.model.session import ModelSession
from agents.steps.measures.complete import complete_record
from app.commands.agents.command import EXIT_FAILED
from app.commands.agents.progress import show_test
from app.commands.console import console
from app.commands.outcome import EXIT_INTERRUPTED
from app.runtime.agents import open_model_client
from engine.api.errors import PravahaError


@dataclass(frozen=True, slots=True)
class ProfileArguments:
    """The options of `pravaha agents profile`, as they were given."""

    json_file: Path | None
    write: bool


def run_profile(given: ProfileArguments, flags: dict[str, Any]) -> int:
    """Measure, keep and print; the exit status. An interrupted measurement keeps nothing."""
    try:
        identity, record = asyncio.run(_measured(flags))
        kept = save_record(identity, record)
        if given.write:
            _write_packaged(identity, record)
        text = json.dumps({"identity": identity, **record.fields()}, indent=2, ensure_ascii=False)
        if given.json_file is not None and str(given.json_file) != "-":
            given.json_file.write_text(text + "\n", encoding="utf-8")
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nThe measurement was stopped; nothing was kept.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (PravahaError, OSError) as error:
        print(f"pravaha: {error}", file=sys.stderr)
        return EXIT_FAILED
    if given.json_file is not None and str(given.json_file) == "-":
        print(text)
    else:
        print_profile(record)
        print(f"kept in {kept}", file=sys.stderr)
    return 0


async def _measured(flags: dict[str, Any]) -> tuple[str, ProfileRecord]:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    if task is None:
        raise AssertionError("it runs in a task")
    with open_model_client(flags) as client:
        session = ModelSession(client)
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            identity = session.identity()
            return identity, await complete_record(session, show_test)
        finally:
            loop.remove_signal_handler(signal.SIGINT)


def _write_packaged(identity: str, record: ProfileRecord) -> None:
    """Add the record to those that come with the program, in a checkout of it."""
    path = packaged_file()
    records = orjson.loads(path.read_bytes())
    records[identity] = record.fields()
    text = json.dumps(records, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def print_profile(record: ProfileRecord) -> None:
    """Shares of right items with what they allow."""
    out = console()
    table = Table(box=None, pad_edge=False)
    for title in ("MEASURED", "RIGHT", "", "ALLOWS"):
        table.add_column(title, justify="right" if title == "RIGHT" else "left")
    for suite, capability in SUITES.items():
        items = record.items.get(suite)
        if items is None:
            table.add_row(suite, "–", "not measured", "")
            continue
        passed = record.scores()[capability] >= PASS[capability]
        table.add_row(
            suite, _count(items.values()), _mark(passed), capability.value if passed else ""
        )
    for kind, share in sorted(record.outputs().items()):
        passed = share >= PASS_OUTPUT
        rights = [
            right for name, right in record.items["outputs"].items() if name.startswith(f"{kind}/")
        ]
        table.add_row(
            f"  {kind}", _count(rights), _mark(passed), f"writes {kind}" if passed else ""
        )
    for name, result in sorted(record.questions.items()):
        change = f"{result['baseline']:.2f} → {result['with_model']:.2f}"
        table.add_row(
            f"  {name}", change, _mark(result["helps"]), "votes" if result["helps"] else ""
        )
    out.print(table)
    out.print(Text(f"\n{record.name}: measured in {record.seconds:.0f} s."))


def _count(rights: Any) -> str:
    values = list(rights)
    return f"{sum(values)} of {len(values)}"


def _mark(passed: bool) -> str:
    return "yes" if passed else "no"
