"""Retrieval: collections of documents, hybrid search, answers with citations (`docs/retrieval.md`)."""
