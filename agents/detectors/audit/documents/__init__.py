"""The detector `documents`: what documents say about the code, its routes, settings, commands and names."""

from agents.detectors.audit.documents.claims import DOCUMENTS

__all__ = ["DOCUMENTS"]
