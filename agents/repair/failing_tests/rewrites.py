"""`rewritten`: candidates that a model writes: a suspect anew, several from one prompt (`agents.width`).

The prompt has the suspect's file, what it uses of other files, the failing test and what pytest said, and
ends with the suspect's name, so that questions about other suspects share all but the end of it.
"""

import ast
import asyncio
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.api.budget import BudgetMeter
from agents.api.events import RunEventType
from agents.api.usage import Usage
from agents.detectors.audit.python_module import FunctionNode, module_of
from agents.model.session import ModelSession
from agents.repair.failing_tests.candidates import PatchCandidate, Refuse
from agents.repair.failing_tests.suspects import Suspect, functions_of, span
from agents.repair.failing_tests.test_bench import Drop, TestBench
from agents.repair.failing_tests.varied_tests import VariedTests
from agents.steps.shared_document import is_private
from agents.width import Chosen, CodePrompt, Outcome, widen
from agents.width.check import Check
from agents.width.checks.parses import Parses
from agents.width.width import Record
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

WIDTH = 6
REPAIRS = 3
MAX_LINES = 80
"""Lines of a function that a model is asked to write anew."""
MAX_SHOWN_LINES = 160
CHECK_S = 60.0
_MORE_TOKENS = 160
_SYSTEM = "You repair Python code. You answer with the corrected function alone, in one fence."


@dataclass(slots=True)
class Rewrites:
    """What came of it.

    Attributes:
        passed: the candidates that passed every check, each once, with its votes.
        usage: tokens of the model.
    """

    passed: list[PatchCandidate] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


async def rewritten(
    bench: TestBench,
    suspect: Suspect,
    test: str,
    session: ModelSession,
    refuse: Refuse,
    known: Sequence[PatchCandidate],
    *,
    record: Record,
    meter: BudgetMeter | None,
) -> Rewrites:
    """Have a suspect written anew, and check what comes.

    Nothing more is written once a rewrite does what one of the known candidates does, which came about
    without it.

    Args:
        bench: where candidates are tried.
        suspect: a function.
        test: node id of the failing test.
        session: the engine.
        refuse: why a change may not be tried, or empty.
        known: candidates that passed already.
        record: where events go.
        meter: pays for the tokens.

    Raises:
        BudgetExhausted, ModelFailure, InvalidRequest: as `agents.width.widen`.
    """
    spliced = _Spliced(bench, suspect, refuse)
    support = _Support(bench, spliced, known)
    checks: list[Check] = [
        Parses(),
        spliced,
        _Failing(bench, spliced, test),
        _Whole(bench, spliced),
        support,
    ]
    room = len(session.client.tokenize(_source(bench.workspace, suspect))) * 3 // 2 + _MORE_TOKENS
    found = Rewrites()
    for hidden in (True, False):
        text = prompt_text(bench, suspect, test, hidden=hidden)
        record(RunEventType.MODEL_ASKED, test=test, name=suspect.name, prompt=text)
        chosen = await widen(
            session,
            CodePrompt.ask(
                text,
                system=_SYSTEM,
                goal=f"{suspect.name}, so that {test.rpartition('::')[2]} passes",
            ),
            checks,
            width=WIDTH,
            repairs=0 if hidden else REPAIRS,
            counted=True,
            max_tokens=room,
            check_s=CHECK_S,
            record=record,
            meter=meter,
            diff_of=lambda code: made.diff if (made := spliced.made(code)) is not None else "",
        )
        found.usage = found.usage.plus(chosen.usage)
        found.passed = _passed(chosen, spliced)
        if found.passed:
            break
    return found


def _passed(chosen: Chosen, spliced: "_Spliced") -> list[PatchCandidate]:
    """The candidates that passed every check, each once with its votes."""
    by_tree: dict[str, PatchCandidate] = {}
    for one in chosen.candidates:
        candidate = spliced.made(one.code)
        if one.failed is not None or candidate is None:
            continue
        key = one.tree_key()
        kept = by_tree.setdefault(key, candidate)
        kept.votes += 1
        if candidate.size < kept.size:
            candidate.votes, candidate.mended = kept.votes, kept.mended
            by_tree[key] = candidate
    return list(by_tree.values())


class _Spliced:
    """The code is the suspect, and putting it into its file is a change that may be tried."""

    name = "fits"
    decides = False

    def __init__(self, bench: TestBench, suspect: Suspect, refuse: Refuse) -> None:
        self._bench = bench
        self._suspect = suspect
        self._refuse = refuse
        file = bench.workspace.get(suspect.path)
        self._before = "" if file is None else file.text
        self._made: dict[str, PatchCandidate | None] = {}

    def made(self, code: str) -> PatchCandidate | None:
        """The candidate of a code; None if it has no such function or changes nothing."""
        if code not in self._made:
            after = spliced_text(self._before, self._suspect, code)
            self._made[code] = (
                None
                if after is None or after == self._before
                else self._bench.candidate(self._suspect, after, "rewritten by the model", None)
            )
        return self._made[code]

    async def judge(self, code: str) -> Outcome:
        """See `Check`."""
        candidate = self.made(code)
        if candidate is None:
            same = spliced_text(self._before, self._suspect, code) == self._before
            said = "It changes nothing." if same else f"It does not define {self._suspect.name}."
            return Outcome(self.name, False, said)
        refusal = await asyncio.to_thread(self._refuse, candidate)
        if refusal:
            return Outcome(self.name, False, refusal)
        return Outcome(self.name, True, f"It changes {candidate.size[0]} lines.", 1.0)


class _Failing:
    """The failing test passes."""

    name = "the failing test"
    decides = False

    def __init__(self, bench: TestBench, spliced: _Spliced, test: str) -> None:
        self._bench, self._spliced, self._test = bench, spliced, test

    async def judge(self, code: str) -> Outcome:
        """See `Check`."""
        candidate = self._spliced.made(code)
        if candidate is None:
            return Outcome(self.name, False, "There is no change.")
        (drop,) = await self._bench.failing([candidate], self._test, total_s=CHECK_S)
        return _outcome(self.name, drop, "It passes now.")


class _Whole:
    """No test that passed fails."""

    name = "all tests"
    decides = False

    def __init__(self, bench: TestBench, spliced: _Spliced) -> None:
        self._bench, self._spliced = bench, spliced

    async def judge(self, code: str) -> Outcome:
        """See `Check`."""
        candidate = self._spliced.made(code)
        if candidate is None:
            return Outcome(self.name, False, "There is no change.")
        (drop,) = await self._bench.whole([candidate], total_s=CHECK_S)
        return _outcome(
            self.name, drop, f"All tests pass, {candidate.mended} of them for the first time."
        )


class _Support:
    """Whether another candidate, found without the model, behaves alike on varied tests: that decides."""

    name = "support"

    def __init__(
        self, bench: TestBench, spliced: _Spliced, known: Sequence[PatchCandidate]
    ) -> None:
        self._bench, self._spliced, self._known = bench, spliced, known
        self._varied: VariedTests | None = None
        self.decides = False

    async def judge(self, code: str) -> Outcome:
        """See `Check`. It is always passed."""
        candidate = self._spliced.made(code)
        if candidate is None or not self._known:
            return Outcome(self.name, True, "Nothing else passed yet.", 1.0)
        if self._varied is None:
            both = [candidate, *self._known]
            varied = self._bench.varied([one.suspect for one in both])
            await self._bench.sign(both, varied, total_s=CHECK_S)
            self._varied = varied  # of one suspect: it serves all candidates
        else:
            await self._bench.sign([candidate], self._varied, total_s=CHECK_S)
        alike = next((one for one in self._known if one.signature == candidate.signature), None)
        if alike is None or alike.mended > candidate.mended:
            return Outcome(self.name, True, "It does something else than what passed before.", 1.0)
        self.decides = True
        return Outcome(
            self.name,
            True,
            f"It does the same as: {alike.what}, on {len(self._varied.tests)} varied tests.",
            1.0,
        )


def _outcome(name: str, drop: Drop | None, passed: str) -> Outcome:
    return Outcome(name, True, passed, 1.0) if drop is None else Outcome(name, False, drop.detail)


def spliced_text(before: str, suspect: Suspect, code: str) -> str | None:
    """The file's text with a function written anew; None if the code has no such function.

    Imports that stand beside it are added to the file's.
    """
    try:
        tree, own = ast.parse(code), ast.parse(before)
    except (SyntaxError, ValueError):
        return None
    name = suspect.name.rpartition(".")[2]
    found = [node for dotted, node in functions_of(tree) if dotted.rpartition(".")[2] == name]
    if not found:
        return None
    first, last = span(found[-1])
    lines = code.split("\n")[first - 1 : last]
    old = before.split("\n")
    margin = old[suspect.first - 1][
        : len(old[suspect.first - 1]) - len(old[suspect.first - 1].lstrip())
    ]
    new = textwrap.indent(textwrap.dedent("\n".join(lines)), margin, lambda one: bool(one.strip()))
    after = [*old[: suspect.first - 1], *new.split("\n"), *old[suspect.last :]]
    known = {one for node in own.body for one in _imported(node)}
    wanted = [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom) and not _imported(node) <= known
    ]
    if wanted:
        at = _import_line(own)
        after[at:at] = wanted
    return "\n".join(after)


def _imported(node: ast.stmt) -> set[str]:
    """The names that an import binds."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    return {one.asname or one.name for one in node.names}


def _import_line(tree: ast.Module) -> int:
    """How many lines stand before the place for another import."""
    imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    plain = [one for one in imports if getattr(one, "module", "") != "__future__"]
    if plain:
        return plain[0].lineno - 1
    if imports:
        return imports[-1].end_lineno or 0
    first = tree.body[0] if tree.body else None
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (first.end_lineno or 0) if first is not None and documented else 0


# The prompt.


def private_file(bench: TestBench, suspect: Suspect, test: str) -> str:
    """The file of a suspect or of its test that holds private data, which no model is shown; or empty."""
    for path in (suspect.path, test.partition("::")[0]):
        file = bench.workspace.get(path)
        if file is not None and is_private(file):
            return path
    return ""


def prompt_text(bench: TestBench, suspect: Suspect, test: str, *, hidden: bool) -> str:
    """What the model is asked.

    Args:
        bench: the project and what its tests said.
        suspect: what is to be written anew.
        test: node id of the failing test.
        hidden: leave the suspect's body out. A small model that sees it copies it, the fault included;
            without it, it writes what the docstring, the callers and the test ask for.
    """
    files = bench.workspace
    own = files.get(suspect.path)
    parts = ["A test of a Python project fails because of one fault in one function.", ""]
    for path in _others(bench, suspect, test):
        other = files.get(path)
        if other is not None:
            parts += [f"The file {path}:", f"```python\n{other.text.strip()}\n```", ""]
    parts += [
        f"The file {suspect.path}:",
        f"```python\n{_excerpt(files, suspect, hidden)}\n```",
        "",
    ]
    parts += [f"The test, which is right, in {test.partition('::')[0]}:"]
    parts += [f"```python\n{_test_source(files, test)}\n```", ""]
    parts += ["What pytest says:", f"```\n{_said(bench.spectrum.texts.get(test, ''))}\n```", ""]
    name = suspect.name
    where = "" if own is None else f" of {suspect.path}"
    short = name.rpartition(".")[2]
    if hidden:
        task = (
            f"The body of `{name}`{where} was lost. Write the whole function `{short}` so that it does "
            "what its name and docstring say for all inputs, fits the rest of the code, and the test "
            "passes. Keep its parameters and docstring."
        )
    else:
        task = (
            f"Find the fault in `{name}`{where}. Write the whole function `{short}` again with the "
            "fault repaired by the smallest change that is right for all inputs, not for this test "
            "alone. Keep its name, its parameters and its docstring."
        )
    parts += [f"{task} Begin with `{_head(bench, suspect)}`."]
    return "\n".join(parts)


def _head(bench: TestBench, suspect: Suspect) -> str:
    """How the function begins, up to its parameters."""
    lines = _source(bench.workspace, suspect).split("\n")
    line = next((one.strip() for one in lines if re.match(r"\s*(async\s+)?def\b", one)), "def")
    return line.partition("(")[0] + "("


def _source(files: Workspace, suspect: Suspect) -> str:
    file = files.get(suspect.path)
    lines = [] if file is None else file.text.split("\n")
    return "\n".join(lines[suspect.first - 1 : suspect.last])


def _others(bench: TestBench, suspect: Suspect, test: str) -> list[str]:
    """Short files that the test runs, beside the suspect's own."""
    room = MAX_SHOWN_LINES
    found = []
    for path in sorted(bench.spectrum.lines.get(test, {})):
        file = bench.workspace.get(path)
        if file is None or path in (suspect.path, test.partition("::")[0]) or is_private(file):
            continue
        if len(file.lines) <= room:
            found.append(path)
            room -= len(file.lines)
    return found


def _excerpt(files: Workspace, suspect: Suspect, hidden: bool) -> str:
    """The file, or of a long one its head, the class's head and the function."""
    file = files.get(suspect.path)
    if file is None:
        return ""
    lines = file.text.split("\n")
    own = _without_body(file, suspect) if hidden else _source(files, suspect)
    if len(lines) <= 2 * MAX_SHOWN_LINES:
        return "\n".join([*lines[: suspect.first - 1], own, *lines[suspect.last :]]).strip("\n")
    module = module_of(file)
    parts = [own]
    if module is not None and "." in suspect.name:
        owner = suspect.name.rpartition(".")[0]
        heads = [
            "\n".join(
                file.text.split("\n")[one.lineno - 1 : min(one.end_lineno or 0, one.lineno + 30)]
            )
            for name, one in functions_of(module.tree)
            if name == f"{owner}.__init__"
        ]
        parts = [f"class {owner}:", *heads, *parts]
    imports = (
        []
        if module is None
        else [one for one in module.tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    )
    return "\n".join([*(ast.unparse(one) for one in imports), "", *parts])


def _without_body(file: SourceFile, suspect: Suspect) -> str:
    """A function with its docstring and without what it does."""
    lines = file.text.split("\n")
    module = module_of(file)
    node = None if module is None else dict(functions_of(module.tree)).get(suspect.name)
    if node is None:
        return "\n".join(lines[suspect.first - 1 : suspect.last])
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    head = lines[suspect.first - 1 : (first.end_lineno or 0) if documented else first.lineno - 1]
    return "\n".join([*head, " " * first.col_offset + "..."])


def _test_source(files: Workspace, test: str) -> str:
    """The test with what its file defines beside tests; the whole file if it is short."""
    path, _, rest = test.partition("::")
    file = files.get(path)
    module = None if file is None else module_of(file)
    if file is None or module is None:
        return rest
    name = rest.partition("[")[0].replace("::", ".")
    functions = dict(functions_of(module.tree))
    lines = file.text.split("\n")
    tests = {
        line
        for other, node in functions.items()
        if other.rpartition(".")[2].startswith("test") and other != name
        for line in range(span(node)[0], span(node)[1] + 1)
    }
    kept = [text for number, text in enumerate(lines, 1) if number not in tests]
    if len(kept) > MAX_SHOWN_LINES and name in functions:
        kept = _lines_of(lines, functions[name])
    return _without_gaps(kept)


def _lines_of(lines: Sequence[str], node: FunctionNode) -> list[str]:
    first, last = span(node)
    return list(lines[first - 1 : last])


def _without_gaps(lines: Sequence[str]) -> str:
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1].strip()):
            kept.append(line.rstrip())
    return "\n".join(kept).strip()


def _said(text: str) -> str:
    """What pytest said, without the source that the prompt has anyway."""
    lines = [one for one in text.split("\n") if one.startswith(("E ", ">")) or one[:1].isalnum()]
    return "\n".join(one[:200] for one in lines[-24:]) or text[-800:]
