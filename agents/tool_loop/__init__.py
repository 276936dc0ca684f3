"""Calls of tools by a model that answers a person: the same loop for the server and the screen."""
