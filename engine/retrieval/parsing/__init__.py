"""Files to documents: type detection, decoding, and the parsers with their process."""
