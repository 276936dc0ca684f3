"""Small helpers over text: near matches, token-free measures."""
