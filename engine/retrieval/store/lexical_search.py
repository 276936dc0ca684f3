"""Finds chunks by the words of a query, ranked by BM25.

BM25 is computed for every chunk that has one of the words, at about 2 µs each (SQLite 3.40, AMD Zen 5), so
frequent words would decide what a query costs and next to nothing about its result. Words are taken from the
rarest on while the chunks that have them are at most `MAX_RANKED`; the rarest is always taken.
"""

import math
import sqlite3

from engine.retrieval.store.scripts import unspaced_runs
from engine.retrieval.store.word_index import grams_table, words_table
from engine.retrieval.store.word_query import any_of, query_words

MAX_RANKED = 4096
"""Chunks that are ranked for a query; more only if its rarest word has more."""
GRAM = 3
_MAX_GRAMS = 64
_SATURATION = 1.2
"""BM25's k1, as in FTS5."""

Scores = dict[int, float]


def lexical_search(
    connection: sqlite3.Connection,
    collection_id: int,
    query: str,
    k: int,
    condition: str | None,
    parameters: list[object],
) -> list[tuple[int, float]]:
    """The best k chunks: ids and scores, best first; equal scores by id.

    Args:
        connection: within a transaction.
        collection_id: the collection.
        query: a text.
        k: the largest number of chunks.
        condition: SQL on the table `document`; None for all documents.
        parameters: its parameters.
    """
    restriction = ""
    if condition is not None:
        restriction = (
            "AND (SELECT document_id FROM chunk WHERE chunk.id = {table}.rowid) IN "
            f"(SELECT id FROM document WHERE collection_id = {collection_id:d} AND {condition})"
        )
    scores: Scores = {}
    words = words_table(collection_id)
    _add(
        scores,
        _ranked(connection, words, _telling(connection, words, query), k, restriction, parameters),
    )
    runs = unspaced_runs(query)
    if runs:
        grams = grams_table(collection_id)
        pieces = [run[at : at + GRAM] for run in runs for at in range(len(run) - GRAM + 1)]
        pieces = list(dict.fromkeys(pieces))[:_MAX_GRAMS]
        _add(scores, _ranked(connection, grams, pieces, k, restriction, parameters))
        for run in runs:
            if len(run) < GRAM:
                _add(scores, _scanned(connection, collection_id, run, k, condition, parameters))
    return sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:k]


def _telling(connection: sqlite3.Connection, table: str, query: str) -> list[str]:
    """The query's words that are worth their cost; none that occurs nowhere."""
    counts = []
    for word in query_words(query):
        (count,) = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)",
            (any_of([word]), MAX_RANKED + 1),
        ).fetchone()
        if count:
            counts.append((count, word))
    counts.sort()
    taken: list[str] = []
    total = 0
    for count, word in counts:
        total += count
        if taken and total > MAX_RANKED:
            break
        taken.append(word)
    return taken


def _ranked(
    connection: sqlite3.Connection,
    table: str,
    terms: list[str],
    k: int,
    restriction: str,
    parameters: list[object],
) -> list[tuple[int, float]]:
    if not terms:
        return []
    order = f"bm25({table})" if restriction else "rank"  # `rank` is computed before the restriction
    rows: list[tuple[int, float]] = connection.execute(
        f"SELECT rowid, -{order} FROM {table} WHERE {table} MATCH ? {restriction.format(table=table)} "
        f"ORDER BY {order} LIMIT ?",
        (any_of(terms), *parameters, k),
    ).fetchall()
    return rows


def _scanned(
    connection: sqlite3.Connection,
    collection_id: int,
    run: str,
    k: int,
    condition: str | None,
    parameters: list[object],
) -> list[tuple[int, float]]:
    """Chunks with a run that is too short for trigrams, by reading all chunks of such scripts."""
    rows: list[tuple[int, int]] = connection.execute(
        "SELECT chunk.id, (length(chunk.text) - length(replace(chunk.text, ?, ''))) / ? AS times "
        "FROM document JOIN chunk ON chunk.id >= first_chunk AND chunk.id < first_chunk + chunks "
        f"WHERE collection_id = ? AND status = 'ready' AND {condition or '1'} "
        "AND chunk.unspaced AND instr(chunk.text, ?) ORDER BY times DESC, chunk.id",
        (run, len(run), collection_id, *parameters, run),
    ).fetchall()
    (total,) = connection.execute(
        "SELECT coalesce(sum(chunks), 0) FROM document WHERE collection_id = ? AND status = 'ready'",
        (collection_id,),
    ).fetchone()
    rarity = math.log(1 + (total - len(rows) + 0.5) / (len(rows) + 0.5))
    return [
        (chunk, rarity * times * (_SATURATION + 1) / (times + _SATURATION))
        for chunk, times in rows[:k]
    ]


def _add(scores: Scores, found: list[tuple[int, float]]) -> None:
    for chunk, score in found:
        scores[chunk] = scores.get(chunk, 0.0) + score
