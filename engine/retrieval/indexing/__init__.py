"""Finds files, reads them and brings a collection up to date."""
