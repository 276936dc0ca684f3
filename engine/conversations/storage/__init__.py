"""Conversations in SQLite: the tables, one writer thread, searches, and what a crash or a full disk leaves.

`store.py` composes it. The records that it stores (`tree.py`, `assignment.py`, `tree_contents.py`) are above.
"""
