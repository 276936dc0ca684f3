"""Finding conversations and messages that contain a text, through the trigram index where it helps."""

import sqlite3
from dataclasses import dataclass, replace

from engine.conversations.matching_line import matching_line
from engine.conversations.tree import NodeKind, SearchHit, TreeSummary

_MIN_TRIGRAM = 3
MAX_HITS = 200
"""Most messages that a search finds."""

SUMMARY = (
    "SELECT id, title, updated_at, (SELECT count(*) FROM node WHERE tree_id = tree.id "
    "AND kind IN ('user', 'assistant') AND pruned_at IS NULL) FROM tree"
)
"""Selects the fields of a `TreeSummary`."""


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """Which trees to find.

    Attributes:
        query: a literal substring of the title or of a message; case is ignored. Empty for all.
        archived: find archived trees instead of the others.
        unsaved: trees to add unless the file has them.
    """

    query: str
    archived: bool
    unsaved: tuple[TreeSummary, ...]


def _contains(query: str) -> tuple[str, list[str]]:
    """An SQL condition on `tree` for texts that contain the query, and its parameters."""
    if not query:
        return "1", []
    pattern = _like(query)
    if len(query) < _MIN_TRIGRAM:  # the trigram index cannot match shorter strings
        return (
            "title LIKE ? ESCAPE '\\' OR id IN (SELECT tree_id FROM node "
            "WHERE status <> 'streaming' AND pruned_at IS NULL AND text LIKE ? ESCAPE '\\')",
            [pattern, pattern],
        )
    phrase = '"' + query.replace('"', '""') + '"'
    return (
        "title LIKE ? ESCAPE '\\' OR id IN (SELECT node.tree_id FROM node_fts "
        "JOIN node ON node.n = node_fts.rowid "
        "WHERE node_fts MATCH ? AND node.pruned_at IS NULL)",
        [pattern, phrase],
    )


def _message_contains(query: str) -> tuple[str, list[str]]:
    """An SQL condition on `node` for finished messages that contain the query, and its parameters."""
    finished = "node.status <> 'streaming'"
    if not query:
        return f"{finished} AND node.text <> ''", []
    if len(query) < _MIN_TRIGRAM:  # the trigram index cannot match shorter strings
        return f"{finished} AND node.text LIKE ? ESCAPE '\\'", [_like(query)]
    phrase = '"' + query.replace('"', '""') + '"'
    return "node.n IN (SELECT rowid FROM node_fts WHERE node_fts MATCH ?)", [phrase]


def find_trees(connection: sqlite3.Connection, asked: TreeQuery) -> list[TreeSummary]:
    """The trees, newest first; with a query, each with the line of its newest message that contains it."""
    query = asked.query.strip()
    condition, parameters = _contains(query)
    rows = connection.execute(
        f"{SUMMARY} WHERE archived = ? AND ({condition}) ORDER BY updated_at DESC, id DESC",
        (int(asked.archived), *parameters),
    )
    trees = [TreeSummary(*row) for row in rows]
    if query:
        lines = _matching_lines(connection, query)
        trees = [replace(tree, match=lines.get(tree.id, "")) for tree in trees]
    if not asked.unsaved:
        return trees
    saved = {tree.id for tree in trees}
    unsaved = [tree for tree in asked.unsaved if tree.id not in saved]
    return sorted([*unsaved, *trees], key=lambda tree: tree.updated_at, reverse=True)


def _matching_lines(connection: sqlite3.Connection, query: str) -> dict[str, str]:
    """The line that contains the query in the newest such message of each tree."""
    condition, parameters = _message_contains(query)
    rows = connection.execute(
        # SQLite takes the other columns from the row of the maximum.
        "SELECT node.tree_id, node.text, max(node.n) FROM node "  # noqa: S608
        f"WHERE node.pruned_at IS NULL AND {condition} GROUP BY node.tree_id",
        parameters,
    )
    return {tree_id: matching_line(text, query).text for tree_id, text, _ in rows}


def find_messages(
    connection: sqlite3.Connection, query: str, limit: int = MAX_HITS
) -> list[SearchHit]:
    """Messages that contain the query, in every branch of trees that are not archived, newest first."""
    condition, parameters = _message_contains(query.strip())
    rows = connection.execute(
        "SELECT node.tree_id, tree.title, node.id, node.kind, node.text, node.created_at "  # noqa: S608
        "FROM node JOIN tree ON tree.id = node.tree_id "
        f"WHERE tree.archived = 0 AND node.pruned_at IS NULL AND {condition} "
        "ORDER BY node.created_at DESC, node.n DESC LIMIT ?",
        (*parameters, limit),
    )
    return [
        SearchHit(tree_id, title, node_id, NodeKind(kind), text, at)
        for tree_id, title, node_id, kind, text, at in rows
    ]


def _like(query: str) -> str:
    """A pattern of LIKE, with a backslash as escape character, for texts that contain the query."""
    return "%" + "".join("\\" + c if c in "\\%_" else c for c in query) + "%"
