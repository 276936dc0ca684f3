"""`Candidate`: one answer of the model with the outcomes of its checks."""

import ast
import re
from dataclasses import dataclass, field

_PATH = re.compile(r"#\s*(\S+\.\w+)\s*\n")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check said about one candidate.

    Attributes:
        check: the check's name.
        passed: whether the candidate passed.
        detail: one sentence: what failed, or what was tried.
        score: how much of the check passed, 0–1; compares candidates that failed the same one.
        seconds: wall time of the check.
    """

    check: str
    passed: bool
    detail: str = ""
    score: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class Candidate:
    """One answer.

    Attributes:
        number: order of arrival, from 0.
        temperature: it was sampled at; 0 is greedy.
        code: the text of its fence; empty if it has none.
        tokens: generated ones.
        mean_logprob: of the generated tokens.
        complete: whether the model ended the answer itself.
        round: 0, or 1 for a repair of a failed candidate.
        same_as: number of an earlier candidate with the same syntax tree, whose outcomes it has.
        outcomes: of the checks in their order; the last one failed unless all passed.
    """

    number: int
    temperature: float
    code: str
    tokens: int = 0
    mean_logprob: float = 0.0
    complete: bool = True
    round: int = 0
    same_as: int | None = None
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def failed(self) -> Outcome | None:
        """The check that it failed, or None."""
        return next((one for one in self.outcomes if not one.passed), None)

    @property
    def rank(self) -> tuple[float, ...]:
        """Larger for a candidate that came further: checks passed, then the share of the failed one."""
        failed = self.failed
        passed = sum(one.passed for one in self.outcomes)
        return float(passed), failed.score if failed else 1.0

    def tree_key(self) -> str:
        """Equal for candidates that differ in comments, docstrings and layout alone.

        A first comment that names a file counts: it says where the code goes.
        """
        try:
            tree = ast.parse(self.code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return self.code
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = [one for one in node.body if not _is_text(one)] or node.body[:1]
        path = _PATH.match(self.code)
        return (path[1] if path else "") + ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
