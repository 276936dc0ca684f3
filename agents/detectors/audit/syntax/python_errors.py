"""All syntax errors of a Python file.

The parser stops at the first error. The line of each error is then replaced by a statement that parses, and
the rest is parsed again, while the errors move down the file. An error that a replacement may have caused is
not reported, so there is one finding per root cause.
"""

import ast
import warnings
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.audit.syntax.rules import SYNTAX_ERROR
from agents.workspace.source_file import SourceFile

MAX_ERRORS = 20


def check_python(file: SourceFile) -> Iterator[Finding]:
    """Findings for the errors of a file, in the order of its lines."""
    if file.python is not None:
        yield from _scope_errors(file)
        return
    for line, reason in python_errors(file.text):
        yield SYNTAX_ERROR.at(file, line, f"The file does not parse: {reason}.", confidence=1.0)


def _scope_errors(file: SourceFile) -> Iterator[Finding]:
    """Statements that parse, but that the compiler refuses: `await` or `return` outside of a function.

    Compiling runs nothing. A top-level `await` is an error in a file, though not in a notebook's cell.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(file.text, file.path, "exec", dont_inherit=True)
    except SyntaxError as error:
        reason = " ".join((error.msg or "invalid syntax").split()).rstrip(".")
        yield SYNTAX_ERROR.at(
            file, error.lineno or 1, f"The file does not compile: {reason}.", confidence=1.0
        )
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return


def python_errors(text: str) -> list[tuple[int, str]]:
    """Line and reason of each error; empty if the text parses."""
    found: list[tuple[int, str]] = []
    lines = text.split("\n")
    for _ in range(MAX_ERRORS):
        error = _first_error("\n".join(lines))
        if error is None:
            break
        line, reason, indentation = error
        last = found[-1][0] if found else 0
        if line <= last or (found and indentation and line <= last + 3):
            break
        found.append((line, reason))
        if "triple-quoted" in reason or not 1 <= line <= len(lines):
            break  # nothing is known about what follows
        _replace(lines, line)
    return found


def _first_error(text: str) -> tuple[int, str, bool] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        reason = " ".join((error.msg or "invalid syntax").split()).rstrip(".")
        return error.lineno or 1, reason, isinstance(error, IndentationError)
    except (ValueError, RecursionError, MemoryError) as error:
        nul = text.find("\0")
        line = text.count("\n", 0, max(nul, 0)) + 1
        return line, str(error) or type(error).__name__, False
    return None


def _replace(lines: list[str], line: int) -> None:
    """Put a statement that parses, with the same indentation, in the place of a line."""
    index = line - 1
    margin = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
    following = next((text for text in lines[index + 1 :] if text.strip()), "")
    deeper = len(following) - len(following.lstrip()) > len(margin)
    lines[index] = margin + ("if True:" if deeper else "pass")
