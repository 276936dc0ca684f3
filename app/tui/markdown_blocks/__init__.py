"""Blocks of Markdown that Textual would cut off at the width of the screen: code and tables."""
