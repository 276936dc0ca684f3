"""`RuleFile`: the rules of a detector, from YAML files in the folder `rules` beside its module.

A file holds one rule or a list of them. Every rule has at least one example that breaks it and one that does
not; `tests/unit/agents/detectors/test_rule_examples.py` runs them all. The files are read at the first use, not
when the module is imported, so that start-up does not pay for them.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from agents.api.data_file import Entry, InvalidData, read_entries
from agents.api.finding import Severity
from agents.detectors.detector import Rule

JAVASCRIPT = ("javascript", "typescript", "tsx")


class Example(Entry):
    """A file that breaks a rule, and one that does not.

    Attributes:
        file: its path; the language follows from it.
        bad: text in which the rule must be found; empty if there is only a good one. `¦` is removed: it keeps
            made-up credentials from looking real in this repository.
        good: text in which it must not.
    """

    file: str
    bad: str = ""
    good: str = ""


class RuledExample(Example):
    """An example in a file of data that several rules use.

    Attributes:
        rule: id of the rule.
        detector: name of the detector that finds it, if that is a program whose rules are its own.
    """

    rule: str
    detector: str = ""


class RuleEntry(Entry):
    """What every rule of a file has; detectors that read patterns from it extend this.

    Attributes:
        id: see `Rule`, as are `title`, `severity`, `cwe`, `reference` and `message`.
        examples: texts that are the rule's tests, besides those of its patterns.
    """

    id: str
    title: str
    severity: Severity
    cwe: int | None = None
    reference: str | None = None
    message: str = ""
    examples: tuple[Example, ...] = ()

    @cached_property
    def rule(self) -> Rule:
        """The rule itself."""
        return Rule(self.id, self.severity, self.title, self.cwe, self.reference, self.message)


_Entry = TypeVar("_Entry", bound=RuleEntry)


class RuleFile(Collection[Rule], Generic[_Entry]):
    """The rules of one detector by id: `RULES["weak-hash"].at(file, line)`."""

    def __init__(self, module: str, *names: str, entry: type[_Entry]) -> None:
        """Note where the rules are.

        Args:
            module: `__file__` of the detector's module.
            names: names of files in the folder `rules` beside it, without their suffix.
            entry: what an entry of the files holds.
        """
        self._folder = Path(module).parent / "rules"
        self._names = names
        self._entry = entry

    @cached_property
    def entries(self) -> Mapping[str, _Entry]:
        """The entries by id.

        Raises:
            InvalidData: a file or an entry is invalid, or two have one id.
        """
        found: dict[str, _Entry] = {}
        for name in self._names:
            for entry in read_entries(self._folder / f"{name}.yaml", self._entry):
                if entry.id in found:
                    raise InvalidData(f"{name}.yaml, entry {entry.id}: the id is taken.")
                found[entry.id] = entry
        return found

    def __getitem__(self, rule_id: str) -> Rule:
        return self.entries[rule_id].rule

    def __contains__(self, rule: object) -> bool:
        return isinstance(rule, Rule) and rule.id in self.entries

    def __iter__(self) -> Iterator[Rule]:
        return (entry.rule for entry in self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)
