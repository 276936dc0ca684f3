"""Layer 4, the memory plane: the paged KV cache, block ownership and the swap tier."""
