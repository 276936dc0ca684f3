"""`FunctionTask`: a function whose head and docstring are given and whose body is to be written."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from agents.width.agreement import Agreement
from agents.width.check import Check
from agents.width.checks.defines import Defines
from agents.width.checks.examples import Examples
from agents.width.checks.parses import Parses
from agents.width.examples import Example, examples_in
from agents.width.inputs import generated_calls
from agents.width.missing_imports import bound_names, with_imports
from agents.width.probe_run import Setting
from agents.width.prompt import CodePrompt
from agents.width.signature import Function, Signature, definition_in, parameters_of


@dataclass(frozen=True, slots=True)
class FunctionTask:
    """One function.

    Attributes:
        source: a module that has the function with its docstring and without a body; what else it has
            (imports, helpers) is there for candidates, too.
        name: the function.
        node: its definition.
        examples: of the docstring.
    """

    source: str
    name: str
    node: Function
    examples: tuple[Example, ...]

    @classmethod
    def of_stub(cls, source: str, name: str) -> "FunctionTask":
        """The task of a stub, such as text up to the end of a docstring.

        Raises:
            SyntaxError: it does not parse.
            KeyError: it has no such function.
        """
        node = definition_in(ast.parse(source), name)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            raise KeyError(name)
        text = ast.get_docstring(node, clean=False) or ""
        found = examples_in(text, name, parameters_of(node))
        return cls(source.rstrip() + "\n", name, node, tuple(found))

    def prompt(self) -> CodePrompt:
        """The question."""
        return CodePrompt.ask(
            "Complete this Python function. Write the whole function, with the imports that it needs.\n\n"
            f"```python\n{self.source}```",
            goal=f"{self.name}()",
        )

    def setting(self) -> Setting:
        """Where candidates run: below the stub, whose imports and helpers they may use."""
        return Setting(module_text=lambda code: f"{self.source}\n\n{code}")

    def checks(self, setting: Setting) -> Sequence[Check]:
        """From cheap to dear."""
        return (
            Parses(),
            Defines(Signature.of(self.node)),
            Examples(setting, self.examples),
        )

    def completed(self, code: str) -> str:
        """A candidate's code with the imports that it forgot."""
        return with_imports(code, bound_names(ast.parse(self.source)))

    def agreement(self, setting: Setting) -> Agreement:
        """Compares candidates on generated inputs."""
        calls = generated_calls(self.node, self.name, [one.call for one in self.examples])
        return Agreement(setting, tuple(calls))
