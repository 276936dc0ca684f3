"""Texts as vectors: an encoder of its own, beside the model that writes."""
