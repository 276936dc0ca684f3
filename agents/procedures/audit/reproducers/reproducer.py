"""`Reproducer`: the body of a test that shows a finding."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Reproducer:
    """The body of a test.

    Attributes:
        kind: `behaviour` calls the code; `source check` looks at its syntax tree.
        body: statements of the test function; `module` or `tree` is bound before.
        reason: what the test shows, in one sentence.
        imports: modules that the body uses, beside `ast`, `sys` and `pytest`.
        fixtures: pytest's fixtures that it takes.
    """

    kind: Literal["behaviour", "source check"]
    body: str
    reason: str
    imports: tuple[str, ...] = ()
    fixtures: tuple[str, ...] = ()
