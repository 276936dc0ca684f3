"""Answering a question from a collection: prompt, citations and their verification."""
