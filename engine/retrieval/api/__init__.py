"""The values that the parts of retrieval pass to each other."""
