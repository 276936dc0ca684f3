"""Calls of tools in the text of an answer: the forms that model families write, and their parser."""
