"""`pravaha rag`: collections of documents and searching them."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.commands.outcome import EXIT_ERROR, one_sentence_errors

if TYPE_CHECKING:
    from engine.retrieval.api.passage import Passage
    from engine.retrieval.indexing.report import AddReport
    from engine.retrieval.library.library import Library

rag_app = typer.Typer(
    no_args_is_help=True, help="Make collections of documents, search them and ask about them."
)

NameArgument = Annotated[str, typer.Argument(help="The collection.", metavar="NAME")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@contextmanager
def open_library() -> "Iterator[Library]":
    """The user's library, with the embedding model that is read on first use."""
    from app.runtime.opening import embedder
    from app.settings.sources import load_settings
    from engine.retrieval.library.library import Library

    settings = load_settings()
    with closing(embedder(settings)) as encoder, Library(settings.retrieval, encoder) as library:
        yield library


@rag_app.command()
def create(name: NameArgument) -> None:
    """Create an empty collection."""
    with one_sentence_errors(), open_library() as library:
        library.create(name)
        print(f"Created {name}: add files to it with `pravaha rag add {name} PATH`.")


@rag_app.command()
def add(
    name: NameArgument,
    paths: Annotated[
        list[str], typer.Argument(help="Files, folders and patterns.", metavar="PATH…")
    ],
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Leave out files in folders that match, as in a .gitignore."),
    ] = None,
) -> None:
    """Add files and folders, or bring them up to date."""
    with one_sentence_errors(), open_library() as library:
        report = library.open(name).add(paths, exclude=exclude or ())
        _print_report(report)


@rag_app.command("list")
def list_collections(as_json: JsonOption = False) -> None:
    """Show all collections."""
    with one_sentence_errors(), open_library() as library:
        rows = []
        for record in library.collections():
            documents = library.open(record.name).documents()
            rows.append(
                {
                    "name": record.name,
                    "documents": sum(one.status == "ready" for one in documents),
                    "failed": sum(one.status == "failed" for one in documents),
                    "chunks": sum(one.chunks for one in documents),
                    "created": int(record.created),
                }
            )
        if as_json:
            print(json.dumps({"collections": rows}, indent=2))
        elif not rows:
            print("There is no collection: create one with `pravaha rag create NAME`.")
        else:
            _print_table(
                ("NAME", "DOCUMENTS", "CHUNKS", "UNREADABLE", "CREATED"),
                [
                    (
                        one["name"], f"{one['documents']:,}", f"{one['chunks']:,}", f"{one['failed']:,}",
                        datetime.fromtimestamp(one["created"]).strftime("%Y-%m-%d"),
                    )
                    for one in rows
                ],
            )  # fmt: skip


@rag_app.command()
def show(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show the documents of a collection."""
    with one_sentence_errors(), open_library() as library:
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
    as_json: JsonOption = False,
) -> None:
    """Show the passages that fit a query best."""
    with one_sentence_errors(), open_library() as library:
        passages = library.open(name).search(query, k=k, mode=mode)
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
    with one_sentence_errors(), open_library() as library:
        if path is None:
            library.remove(name)
            print(f"Removed {name}.")
        else:
            count = library.open(name).remove(path)
            print(f"Removed {count} {'document' if count == 1 else 'documents'}.")


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


def _print_report(report: "AddReport") -> None:
    parts = [
        f"{report.added:,} added",
        f"{report.updated:,} updated",
        f"{report.unchanged:,} unchanged",
    ]
    if report.removed:
        parts.append(f"{report.removed:,} removed")
    print(f"{', '.join(parts)}; {report.chunks:,} chunks in {report.seconds:.1f} s.")
    for failure in report.failed:
        print(f"{failure.path}: {failure.reason}", file=sys.stderr)
    if report.cancelled:
        raise typer.Exit(EXIT_ERROR)


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
