"""`pravaha rag`: collections of documents and searching them."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.commands.outcome import EXIT_ERROR, EXIT_INTERRUPTED, one_sentence_errors

if TYPE_CHECKING:
    from engine.retrieval.api.passage import Passage
    from engine.retrieval.indexing.report import AddReport
    from engine.retrieval.library.doctor import DoctorReport
    from engine.retrieval.library.library import Library

rag_app = typer.Typer(
    no_args_is_help=True, help="Make collections of documents, search them and ask about them."
)

NameArgument = Annotated[str, typer.Argument(help="The collection.", metavar="NAME")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Search only documents whose attribute fits, such as year>=2025 or file!=PATH; repeatable.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@contextmanager
def _library(*, embeds: bool = False) -> "Iterator[Library]":
    """The user's library; the embedding model is fetched on its first use if the command `embeds`."""
    from app.commands.fetch_bar import fetch_bar
    from app.runtime.collections import fetch_encoder, open_library
    from app.settings.sources import load_settings

    settings = load_settings()
    with open_library(settings) as library:
        if embeds:
            with fetch_bar() as progress:
                fetch_encoder(settings, progress)
        yield library


@rag_app.command()
def create(
    name: NameArgument,
    vectors: Annotated[
        Literal["f16", "int8", "f32"], typer.Option(help="How vectors are stored.")
    ] = "f16",
    store: Annotated[
        Literal["auto", "exact", "hnsw", "pgvector"],
        typer.Option(
            help="Where vectors are: in a file that is searched exactly (exact), with an HNSW index (hnsw), "
            "with one from 500,000 chunks on if usearch is installed (auto), or in PostgreSQL (pgvector)."
        ),
    ] = "auto",
    dsn_env: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE",
            help="For pgvector: the environment variable that has the URL of the database, "
            "postgresql://user:password@host/database.",
        ),
    ] = None,
) -> None:
    """Create an empty collection."""
    with one_sentence_errors(), _library() as library:
        library.create(name, vector_type=vectors, vector_store=store, dsn_env=dsn_env)
        print(f"Created {name}: add files to it with `pravaha rag add {name} PATH`.")


@rag_app.command()
def add(
    name: NameArgument,
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders and patterns; - for standard input.", metavar="PATH..."
        ),
    ],
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Leave out matching files of folders, as in a .gitignore; repeatable.",
        ),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Give each document an attribute; repeatable."),
    ] = None,
    as_name: Annotated[
        str, typer.Option("--name", help="File name of the document on standard input.")
    ] = "stdin.txt",
    as_json: JsonOption = False,
) -> None:
    """Add files and folders; changed files are read again.

    Follows .gitignore and leaves out hidden files. Ctrl+C stops; the same command goes on from there.
    """
    from app.commands.rag_progress import index_run
    from app.slash.document_attributes import read_attribute

    with one_sentence_errors(), _library(embeds=True) as library:
        collection = library.open(name)
        attributes = dict(read_attribute(one) for one in attribute or ())
        with index_run() as (progress, cancelled):
            reports = []
            files = [one for one in paths if one != "-"]
            if files:
                reports.append(
                    collection.add(
                        files,
                        exclude=exclude or (),
                        attributes=attributes,
                        progress=progress,
                        cancelled=cancelled,
                    )
                )
            if len(files) < len(paths) and not cancelled():
                reports.append(
                    collection.add_text(
                        sys.stdin.buffer.read(),
                        as_name,
                        attributes=attributes,
                        progress=progress,
                        cancelled=cancelled,
                    )
                )
        _finish(reports, as_json)


@rag_app.command()
def refresh(name: NameArgument, as_json: JsonOption = False) -> None:
    """Read what has changed since it was added, and delete what is gone."""
    from app.commands.rag_progress import index_run

    with one_sentence_errors(), _library(embeds=True) as library:
        with index_run() as (progress, cancelled):
            report = library.open(name).refresh(progress=progress, cancelled=cancelled)
        _finish([report], as_json)


@rag_app.command()
def watch(name: NameArgument) -> None:
    """Refresh whenever files change, until Ctrl+C."""
    import threading

    from app.commands.rag_progress import on_interrupt

    with one_sentence_errors(), _library(embeds=True) as library:
        collection = library.open(name)
        folders = ", ".join(one.pattern for one in collection.sources())
        if not folders:
            print(f"{name} is empty: add files to it with `pravaha rag add {name} PATH`.")
            raise typer.Exit(EXIT_ERROR)
        print(f"Watching {printable(folders)}; Ctrl+C stops.", flush=True)
        stop = threading.Event()
        with on_interrupt(stop.set):
            collection.watch(stop, on_report=_print_report)


@rag_app.command()
def doctor(name: NameArgument, as_json: JsonOption = False) -> None:
    """Examine a collection and repair it; tell whether its documents are up to date.

    Damaged word indexes and vectors are computed anew from the stored texts, and the vectors of deleted
    documents leave the file. The exit status is 1 if there was damage.
    """
    with one_sentence_errors(), _library() as library:
        report = library.open(name).doctor()
    restored = _restore_vectors(name) if report.lost_vectors else None
    if as_json:
        print(json.dumps(asdict(report) | {"restored_vectors": restored or 0}, indent=2))
    else:
        _print_diagnosis(name, report)
        if restored is not None:
            print(f"{restored:,} of {report.lost_vectors:,} vectors were computed anew.")
    if restored is not None and restored < report.lost_vectors:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED)
    if report.damage:
        raise typer.Exit(EXIT_ERROR)


@rag_app.command("list")
def list_collections(as_json: JsonOption = False) -> None:
    """Show all collections."""
    with one_sentence_errors(), _library() as library:
        rows = [(record, library.counts(record)) for record in library.collections()]
        if as_json:
            fields = [
                {
                    "name": record.name,
                    "documents": counts.documents,
                    "failed": counts.failed,
                    "chunks": counts.chunks,
                    "bytes": counts.bytes,
                    "model": record.model,
                    "vectors": record.vector_type,
                    "store": record.vector_store,
                    "created": int(record.created),
                }
                for record, counts in rows
            ]
            print(json.dumps({"collections": fields}, indent=2))
        elif not rows:
            print("There is no collection: create one with `pravaha rag create NAME`.")
        else:
            _print_table(
                ("NAME", "DOCUMENTS", "CHUNKS", "UNREADABLE", "CREATED"),
                [
                    (
                        record.name,
                        f"{counts.documents:,}",
                        f"{counts.chunks:,}",
                        f"{counts.failed:,}",
                        datetime.fromtimestamp(record.created).strftime("%Y-%m-%d"),
                    )
                    for record, counts in rows
                ],
            )


@rag_app.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show the documents of a collection."""
    with one_sentence_errors(), _library() as library:
        documents = library.open(name).documents()
        if as_json:
            fields = [
                {
                    "file": one.path, "status": one.status, "reason": one.reason, "chunks": one.chunks,
                    "bytes": one.size, "media_type": one.media_type, "title": one.title,
                    "attributes": one.attributes,
                }
                for one in documents
            ]  # fmt: skip
            print(json.dumps({"name": name, "documents": fields}, indent=2))
        elif not documents:
            print(f"{name} is empty: add files to it with `pravaha rag add {name} PATH`.")
        else:
            _print_table(
                ("FILE", "CHUNKS", "TYPE", "NOTE"),
                [
                    (one.path, f"{one.chunks:,}", one.media_type or "unreadable", one.reason or "")
                    for one in documents
                ],
            )


@rag_app.command()
def search(
    name: NameArgument,
    query: Annotated[str, typer.Argument(help="Words or a sentence.")],
    k: Annotated[
        int, typer.Option("-k", min=1, max=1000, help="The largest number of passages.")
    ] = 8,
    mode: Annotated[
        Literal["hybrid", "dense", "lexical"],
        typer.Option(help="By words (lexical), by meaning (dense), or by both."),
    ] = "hybrid",
    where: WhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the passages that fit a query best."""
    from app.slash.document_attributes import read_conditions

    with one_sentence_errors(), _library(embeds=mode != "lexical") as library:
        conditions = read_conditions(where or ())
        passages = library.open(name).search(query, k=k, mode=mode, where=conditions)
        if as_json:
            print(json.dumps({"results": [passage_fields(one) for one in passages]}, indent=2))
        elif not passages:
            print("Nothing fits.")
        else:
            _print_passages(passages)


@rag_app.command()
def remove(
    name: NameArgument,
    path: Annotated[
        Path | None, typer.Argument(help="A document or folder; without one, the whole collection.")
    ] = None,
) -> None:
    """Delete a collection, or documents of it, from every index and from the disk."""
    with one_sentence_errors(), _library() as library:
        if path is None:
            library.remove(name)
            print(f"Removed {name}.")
        else:
            count = library.open(name).remove(path)
            print(f"Removed {count} {'document' if count == 1 else 'documents'}.")


def _restore_vectors(name: str) -> int:
    from app.commands.rag_progress import index_run

    with _library(embeds=True) as library, index_run() as (progress, cancelled):
        return library.open(name).restore_vectors(progress=progress, cancelled=cancelled)


def passage_fields(passage: "Passage") -> dict[str, object]:
    """A passage as JSON."""
    return {
        "file": passage.file,
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
        "score": passage.score,
        "rank": passage.rank,
        "chunk": passage.chunk_id,
        "spans_of": passage.spans_of,
        "title": passage.title,
        "headings": list(passage.heading_path),
        "page": passage.page,
        "line": passage.line,
        "tokens": passage.tokens,
        "dense": passage.dense,
        "lexical": passage.lexical,
        "attributes": passage.attributes,
    }


def _finish(reports: "list[AddReport]", as_json: bool) -> None:
    if as_json:
        print(json.dumps({"runs": [asdict(one) for one in reports]}, indent=2))
    else:
        for one in reports:
            _print_report(one)
    if any(one.cancelled for one in reports):
        raise typer.Exit(EXIT_INTERRUPTED)


def _print_report(report: "AddReport") -> None:
    parts = [f"{report.added:,} added"]
    for count, what in (
        (report.updated, "updated"),
        (report.removed, "removed"),
        (report.unchanged, "unchanged"),
        (len(report.failed), "unreadable"),
    ):
        if count:
            parts.append(f"{count:,} {what}")
    print(f"{', '.join(parts)}; {report.chunks:,} chunks in {report.seconds:.1f} s.", flush=True)
    for failure in report.failed:
        print(printable(f"{failure.path}: {failure.reason}"), file=sys.stderr)
    for folder in report.unreachable:
        print(
            printable(
                f"{folder.folder} cannot be reached: documents of {folder.documents:,} files are kept until "
                "`pravaha rag remove` deletes them."
            ),
            file=sys.stderr,
        )
    if not report.purged:
        print(
            "Another process is searching: deleted text leaves the files at the next deletion.",
            file=sys.stderr,
        )
    if report.cancelled:
        print("Stopped; the same command goes on from here.", file=sys.stderr)


def _print_diagnosis(name: str, report: "DoctorReport") -> None:
    print(
        f"{name}: {report.documents:,} documents, {report.chunks:,} chunks; the database of all collections "
        f"has {report.database_bytes / 1e6:.1f} MB, the vectors {report.vector_bytes / 1e6:.1f} MB, "
        f"from which {report.dead_slots:,} of deleted documents were removed."
    )
    for one in report.unreadable:
        print(printable(f"unreadable: {one.path}: {one.reason}"))
    for path in report.outdated:
        print(printable(f"outdated: {path}"))
    if report.outdated:
        print(f"Bring them up to date with `pravaha rag refresh {name}`.")
    for damage in report.damage:
        print(printable(f"damaged: {damage}"))
    if not report.damage:
        print("No damage.")


def _print_passages(passages: "list[Passage]") -> None:
    for one in passages:
        place = f"{one.file}:{one.line}"
        heading = " › ".join(one.heading_path)
        print(printable(f"{one.rank}. {place}  {heading}  ({one.score:.3f})"))
        for line in one.text.strip().splitlines():
            print(f"   {printable(line)}")
        print()


def _print_table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from app.commands.console import console

    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console().print(table)


def printable(text: str) -> str:
    """Text without the control sequences of a terminal that a document may hold."""
    return "".join(one if one.isprintable() else "�" for one in text)
