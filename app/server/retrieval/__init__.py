"""Files and vector stores of the HTTP API: what they are, where they are kept, who indexes them."""
