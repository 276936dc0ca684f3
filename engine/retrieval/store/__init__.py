"""The SQLite database of documents, chunks and word indexes."""
