"""What bounds a grammar: its size, its build, and each of its masks.

Size and depth are checked before anything else looks at the text. The build runs in a process of
its own first (`checker`), under the processor time and memory given here, because the grammar
library's own limits do not cover everything (a schema with a few large `multipleOf` takes gigabytes
in it). The limits of a mask hold inside the library: fuel for the lexer, items for the parser.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llguidance import LLParserLimits

MAX_SOURCE_CHARS = 128 * 1024
MAX_JSON_DEPTH = 64
MAX_CHOICES = 1024

BUILD_CPU_S = 2
"""Processor seconds, whole ones as the kernel counts them."""
BUILD_WALL_S = 60.0
"""For a build that sleeps or starves; processor time ends all others."""
BUILD_BYTES = 1 << 30
"""Address space of the checking process."""

MAX_CACHED = 128
MAX_PENDING = 64
"""Grammars that may wait for their build at once."""
BUILDERS = 2

PARSER_LIMITS: dict[str, Any] = {
    "max_items_in_row": 2_000,
    "initial_lexer_fuel": 1_000_000,
    "step_lexer_fuel": 100_000,  # about 7 ms
    "step_max_items": 10_000,  # about 1 ms; up to ten with many forced tokens
    "max_lexer_states": 20_000,  # 1–2 kB each
    "max_grammar_size": 200_000,
    "verbose_errors": False,  # they would hold the parser's state
}


def parser_limits() -> "LLParserLimits":
    """The library's limits."""
    from llguidance import LLParserLimits

    return LLParserLimits(**PARSER_LIMITS)
