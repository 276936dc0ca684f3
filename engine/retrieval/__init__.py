"""Retrieval: collections of documents, hybrid search over their chunks, answers with citations (`docs/retrieval.md`)."""
