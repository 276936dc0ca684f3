"""Keeps documents, notes and archives."""
