"""`packages`: which imports are real (`packages.yaml`)."""

from functools import cache
from pathlib import Path

from agents.api.data_file import Entry, read_entries
from agents.detectors.rule_file import RuledExample


class Packages(Entry):
    """Names of packages and modules.

    Attributes:
        well_known: import names that are real even where they are neither declared nor installed.
        inspected: modules of the standard library whose import has no effect; their names are looked up.
        aliases: names of distributions by import name, where they differ.
        examples: tests.
    """

    well_known: frozenset[str]
    inspected: frozenset[str]
    aliases: dict[str, str]
    examples: tuple[RuledExample, ...]


@cache
def packages() -> Packages:
    """What the file says; read at the first call."""
    (found,) = read_entries(Path(__file__).with_suffix(".yaml"), Packages)
    return found
