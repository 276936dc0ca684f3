"""`Parses`: the code is Python. Costs microseconds."""

import ast
import warnings

from agents.width.candidate import Outcome


class Parses:
    """Fails with the line and the message of the syntax error."""

    name = "parses"
    decides = False

    async def judge(self, code: str) -> Outcome:
        """See `Check`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(code, "<candidate>", "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
        except SyntaxError as error:
            return Outcome(self.name, False, f"Line {error.lineno}: {error.msg}.")
        except (ValueError, RecursionError, MemoryError) as error:
            return Outcome(self.name, False, f"The code cannot be parsed: {error}.")
        return Outcome(self.name, True, "It parses.")
