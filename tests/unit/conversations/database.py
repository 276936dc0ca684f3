"""Nodes of a tree `t` for the database of a test, and statements that go round the store."""

import sqlite3

from engine.conversations.tree import Node, NodeKind, NodeStatus


def node(name, parent=None, kind=NodeKind.USER, text="", status=NodeStatus.DONE):
    return Node(name, "t", parent, kind, text, status, 1.0)


def execute(file, statement, *parameters):
    connection = sqlite3.connect(file)
    try:
        with connection:
            return connection.execute(statement, parameters).fetchall()
    finally:
        connection.close()
