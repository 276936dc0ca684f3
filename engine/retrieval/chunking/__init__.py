"""Documents to chunks: cut by real tokens of the embedding model, at the best boundaries."""
