"""The slash commands of both front ends: their table and the parsing of a line."""
