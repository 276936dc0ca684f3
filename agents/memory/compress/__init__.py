"""Deterministic compressors of working memory: the same text always becomes the same shorter text."""
