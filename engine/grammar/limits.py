"""Limits of a grammar: its size, its build, and each of its masks.

Size and depth are checked first. The build then runs in a checking process (`checker`) under the processor
time and memory given here, because the library's limits do not cover everything. Limits of a mask are
enforced by the library: fuel for the lexer, items for the parser.
"""

from typing import TYPE_CHECKING, Any

from engine.api.grammar import GrammarKind

if TYPE_CHECKING:
    from llguidance import LLParserLimits

MAX_SOURCE_CHARS = 128 * 1024
MAX_TOOLS_CHARS = 1024 * 1024
"""Characters of a request's tools: schemas of agents have 32 to 100 kB with their descriptions."""
MAX_JSON_DEPTH = 64
MAX_CHOICES = 1024

BUILD_CPU_S = 2
"""Processor time of a build."""
QUICK_CPU_S = 0.05
"""Processor time of a first attempt; published schemas take 2 to 20 ms (`engine.grammar.build_queue`)."""
BUILD_WALL_S = 60.0
"""Wall-clock limit, for a build that waits for a processor; all others reach `BUILD_CPU_S` first."""
BUILD_BYTES = 1 << 30
"""Address space of the checking process."""

MAX_CACHED = 128
MAX_PENDING = 64
"""Maximum number of builds in progress or queued."""
BUILDERS = 2

PARSER_LIMITS: dict[str, Any] = {
    "max_items_in_row": 2_000,
    "initial_lexer_fuel": 1_000_000,
    "step_lexer_fuel": 100_000,  # about 7 ms
    "step_max_items": 10_000,  # about 1 ms; up to 10 ms with many forced tokens
    "max_lexer_states": 40_000,  # 0.6 kB each; up to 10 for a character that is counted
    "max_grammar_size": 200_000,
    "verbose_errors": False,  # verbose errors contain the parser's state
}
CALL_LEXER_STATES = 100_000
"""For calls of tools, whose schemas may count several strings. 60 MB if all are used."""


def parser_limits(kind: GrammarKind) -> "LLParserLimits":
    """The library's limits for a grammar of a kind."""
    from llguidance import LLParserLimits

    states = {"max_lexer_states": CALL_LEXER_STATES} if kind == "tool_calls" else {}
    return LLParserLimits(**{**PARSER_LIMITS, **states})
