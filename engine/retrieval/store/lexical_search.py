"""Finds chunks by the words of a query, ranked by BM25.

BM25 is computed for every chunk that has one of the words, at about 2 µs each (SQLite 3.40, Intel Xeon), so
frequent words would decide what a query costs and next to nothing about its result. Words are taken from the
rarest on while the chunks that have them are at most `MAX_RANKED`; the rarest is always taken.
"""

import math
import sqlite3
from dataclasses import dataclass

from engine.retrieval.store.scripts import Unspaced, unspaced_runs
from engine.retrieval.store.word_forms import folded_form
from engine.retrieval.store.word_index import grams_table, words_table
from engine.retrieval.store.word_query import Spellings, any_of, query_words

MAX_RANKED = 4096
"""Chunks that are ranked for a query; more only if its rarest word has more."""
GRAM = 3
_MAX_GRAMS = 64
_SATURATION = 1.2
"""BM25's k1, as in FTS5."""

_LEAST_IDF = 1e-6
"""Of a word that more than half of the chunks have, as in FTS5."""

Scores = dict[int, float]


@dataclass(frozen=True, slots=True)
class LexicalMatches:
    """Chunks that have words of a query.

    Attributes:
        scores: chunk ids and BM25, best first; equal scores by id.
        ideal: the limit of BM25: what a chunk would score that has every word of the query that was ranked,
            or that no chunk has, ever so often. `score / ideal` is the share of the query that was found.
    """

    scores: list[tuple[int, float]]
    ideal: float


def lexical_search(
    connection: sqlite3.Connection,
    collection_id: int,
    query: str,
    k: int,
    condition: str | None,
    parameters: list[object],
) -> LexicalMatches:
    """The best k chunks.

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
    ideal = 0.0
    runs = unspaced_runs(folded_form(query))
    lookups = (
        (words_table(collection_id), query_words(query)),
        (grams_table(collection_id), _grams(runs)),
    )
    for table, terms in lookups:
        if terms:
            telling, best = _telling(connection, table, terms)
            ideal += best
            _add(scores, _ranked(connection, table, telling, k, restriction, parameters))
    for run in runs:
        if len(run) < GRAM:
            found, best = _scanned(connection, collection_id, run, k, condition, parameters)
            ideal += best
            _add(scores, found)
    ordered = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:k]
    return LexicalMatches(ordered, ideal)


def _grams(runs: list[str]) -> list[Spellings]:
    pieces = [run[at : at + GRAM] for run in runs for at in range(len(run) - GRAM + 1)]
    grams: list[Spellings] = [(one,) for one in dict.fromkeys(pieces)]
    return grams[:_MAX_GRAMS]


def _telling(
    connection: sqlite3.Connection, table: str, terms: list[Spellings]
) -> tuple[list[Spellings], float]:
    """The terms that are worth their cost, and the limit of BM25 for these and those that are nowhere."""
    (total,) = connection.execute(f"SELECT count(*) FROM {table}_docsize").fetchone()
    counts = []
    for term in terms:
        (count,) = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)",
            (any_of([term]), MAX_RANKED + 1),
        ).fetchone()
        counts.append((count, term))
    counts.sort()
    taken: list[Spellings] = []
    ranked, ideal = 0, 0.0
    for count, term in counts:
        ranked += count
        if taken and ranked > MAX_RANKED:
            break
        if count:
            taken.append(term)
        ideal += _idf(total, count) * (_SATURATION + 1)
    return taken, ideal


def _idf(total: int, count: int) -> float:
    return max(math.log((total - count + 0.5) / (count + 0.5)), _LEAST_IDF)


def _ranked(
    connection: sqlite3.Connection,
    table: str,
    terms: list[Spellings],
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
) -> tuple[list[tuple[int, float]], float]:
    """Chunks with a run that is too short for trigrams, by reading all chunks of such scripts.

    Returns:
        The best k, with scores as of a word, and the limit of these scores.
    """
    folded = f"iif(chunk.unspaced = {Unspaced.UNFOLDED:d}, search_form(chunk.text), chunk.text)"
    rows: list[tuple[int, int]] = connection.execute(
        f"SELECT id, (length(folded) - length(replace(folded, ?, ''))) / ? AS times FROM ("
        f"SELECT chunk.id AS id, {folded} AS folded "
        "FROM document JOIN chunk ON chunk.id >= first_chunk AND chunk.id < first_chunk + chunks "
        f"WHERE collection_id = ? AND status = 'ready' AND {condition or '1'} AND chunk.unspaced) "
        "WHERE instr(folded, ?) ORDER BY times DESC, id",
        (run, len(run), collection_id, *parameters, run),
    ).fetchall()
    (total,) = connection.execute(
        "SELECT coalesce(sum(chunks), 0) FROM document WHERE collection_id = ? AND status = 'ready'",
        (collection_id,),
    ).fetchone()
    rarity = _idf(total, len(rows))
    found = [
        (chunk, rarity * times * (_SATURATION + 1) / (times + _SATURATION))
        for chunk, times in rows[:k]
    ]
    return found, rarity * (_SATURATION + 1)


def _add(scores: Scores, found: list[tuple[int, float]]) -> None:
    for chunk, score in found:
        scores[chunk] = scores.get(chunk, 0.0) + score
