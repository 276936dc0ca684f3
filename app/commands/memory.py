"""`pravaha memory`: what the agents remember."""

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.commands.outcome import EXIT_ERROR, one_sentence_errors

if TYPE_CHECKING:
    from agents.memory.entry import MemoryEntry
    from agents.memory.recall import Recall
    from agents.memory.store import MemoryStore

memory_app = typer.Typer(
    no_args_is_help=True, help="List, search, forget and export what the agents remember."
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ScopeOption = Annotated[
    Literal["user", "project", "agent"] | None,
    typer.Option(help="Only the user's memories, projects' or agents'."),
]
ShownKind = Literal["episode", "fact"]
TEXT_CHARS = 100


@memory_app.command("list")
def list_memories(
    scope: ScopeOption = None,
    kind: Annotated[ShownKind | None, typer.Option(help="Only episodes, or facts.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The largest number.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show the newest memories."""
    from agents.memory.entry import MemoryKind, entry_fields

    with one_sentence_errors(), _store() as store:
        wanted = None if kind is None else MemoryKind(kind)
        # Scopes are selected here, because projects and agents have many owners.
        entries = [
            entry
            for entry in store.entries(kind=wanted, limit=sys.maxsize)
            if scope is None or entry.scope.kind == scope
        ][:limit]
        if as_json:
            print(json.dumps({"memories": [entry_fields(entry) for entry in entries]}, indent=2))
        elif entries:
            _print_table(entries)
        else:
            print("Nothing is remembered.")


@memory_app.command()
def search(
    query: Annotated[str, typer.Argument(help="Words or a sentence.")],
    max_tokens: Annotated[int, typer.Option(min=1, help="Cap over all texts.")] = 2000,
    as_json: JsonOption = False,
) -> None:
    """Recall memories as an agent would: by words and meaning, importance and age."""
    with one_sentence_errors(), _store() as store:
        result = _recall(store, query, max_tokens)
        if as_json:
            print(json.dumps(_recall_fields(result), indent=2))
            return
        for note in result.notes:
            print(note, file=sys.stderr)
        if result.memories:
            _print_table([one.entry for one in result.memories])
        else:
            print("Nothing is remembered about that.")


@memory_app.command()
def forget(
    ids: Annotated[list[str], typer.Argument(help="Ids, as `memory list` shows them.")],
    redact: Annotated[
        bool, typer.Option("--redact", help="Keep the record that there was a text, without it.")
    ] = False,
) -> None:
    """Delete memories with all their versions, from every index and from the file."""
    with one_sentence_errors(), _store() as store:
        unknown = [key for key in ids if not store.history(key)]
        if unknown:
            print(f"pravaha: There is no memory {unknown[0]}.", file=sys.stderr)
            raise typer.Exit(EXIT_ERROR)
        results = [store.redact(key) for key in ids] if redact else [store.forget(ids)]
        print(f"{'Redacted' if redact else 'Forgot'} {len(set(ids))}.")
        if not all(result.purged for result in results):
            print(
                "Another process uses the memory: the text leaves the file at the next deletion.",
                file=sys.stderr,
            )


@memory_app.command()
def export(
    file: Annotated[
        Path | None, typer.Argument(help="File to write; without one, standard output.")
    ] = None,
) -> None:
    """Write all versions of all memories as JSON lines."""
    from agents.memory.entry import entry_fields

    with one_sentence_errors(), _store() as store:
        lines = [json.dumps(entry_fields(entry), ensure_ascii=False) for entry in store.export()]
        if file is None:
            print("\n".join(lines), end="\n" if lines else "")
            return
        descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
        print(f"Wrote {len(lines)} versions to {file}.")


def _store() -> "MemoryStore":
    from agents.memory.store import MemoryStore
    from app.settings.sources import load_settings

    return MemoryStore(load_settings().memory)


def _recall(store: "MemoryStore", query: str, max_tokens: int) -> "Recall":
    from agents.memory.recall import recall
    from app.runtime.opening import embedder
    from app.settings.sources import load_settings

    with closing(embedder(load_settings())) as encoder:
        return recall(
            store,
            query,
            scopes=None,
            now=time.time(),
            max_tokens=max_tokens,
            embedder=encoder,
            model=encoder.name,
        )


def _recall_fields(result: "Recall") -> dict[str, object]:
    from agents.memory.entry import entry_fields

    return {
        "memories": [
            {**entry_fields(one.entry), "score": round(one.score, 4)} for one in result.memories
        ],
        "tokens": result.tokens,
        "notes": list(result.notes),
    }


def _print_table(entries: "Sequence[MemoryEntry]") -> None:
    from rich.table import Table
    from rich.text import Text

    from app.commands.console import console

    table = Table(box=None, pad_edge=False)
    for title in ("ID", "SCOPE", "WRITTEN", "FROM", "PATH", "TEXT"):
        table.add_column(title, no_wrap=title == "ID")
    for entry in entries:
        scope = " ".join(filter(None, (entry.scope.kind.value, entry.scope.owner)))
        written = datetime.fromtimestamp(entry.created).strftime("%Y-%m-%d %H:%M")
        labels = ", ".join(sorted(entry.taint - {"trusted"}))
        origin = f"{entry.origin} ({labels})" if labels else entry.origin
        text = " ".join(entry.text.split())
        shown = text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS - 1]}…"
        cells = (entry.id, scope, written, origin, entry.path or entry.kind.value, shown)
        table.add_row(*(Text(_printable(cell)) for cell in cells))
    console().print(table)


def _printable(text: str) -> str:
    """Text of an agent may hold control sequences of a terminal."""
    return "".join(one if one.isprintable() else "�" for one in text)
