"""Text embeddings: a BERT encoder that is loaded separately from the generating model."""
