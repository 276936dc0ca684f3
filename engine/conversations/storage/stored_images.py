"""The images of messages in the database: stored once per content, read with their nodes.

An image is kept as long as a node has it; `remove_unused` deletes the others. All functions run inside the
caller's transaction. Cost: one row per image and node; the bytes of an image are written once.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from engine.api.image import Image
from engine.conversations.tree import Node


def add_images(connection: sqlite3.Connection, nodes: Sequence[Node]) -> None:
    """Store the images of new nodes."""
    for node in nodes:
        for position, image in enumerate(node.images):
            connection.execute(
                "INSERT OR IGNORE INTO image (digest, media_type, width, height, data) "
                "VALUES (?, ?, ?, ?, ?)",
                (image.digest, image.media_type, image.width, image.height, image.data),
            )
            connection.execute(
                "INSERT INTO node_image (tree_id, node_id, position, image_n) "
                "SELECT ?, ?, ?, n FROM image WHERE digest = ?",
                (node.tree_id, node.id, position, image.digest),
            )


def with_images(connection: sqlite3.Connection, node: Node) -> Node:
    """The node with its images, if it has any."""
    if not node.n_images:
        return node
    rows = connection.execute(
        "SELECT data, media_type, width, height FROM node_image JOIN image ON n = image_n "
        "WHERE tree_id = ? AND node_id = ? ORDER BY position",
        (node.tree_id, node.id),
    )
    return replace(node, images=tuple(Image(*row) for row in rows))


def remove_unused(connection: sqlite3.Connection) -> None:
    """Delete the images that no node has."""
    connection.execute("DELETE FROM image WHERE n NOT IN (SELECT image_n FROM node_image)")
