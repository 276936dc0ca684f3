"""Model files: where they come from, what they contain, how their text is tokenised."""
