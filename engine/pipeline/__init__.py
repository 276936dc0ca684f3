"""Layer 3: tokenise, schedule, sample, decode."""
