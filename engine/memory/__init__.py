"""Layer 4, the memory plane: the paged KV cache and who owns which block."""
