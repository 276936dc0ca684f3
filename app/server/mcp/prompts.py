"""The prompts: what a person chooses in a host, with the words that make good use of the tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcp_types import Prompt, PromptArgument

from app.server.mcp.tool import ToolError

MAX_ARGUMENT_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a prompt.

    Attributes:
        name: its name.
        description: what it is.
        default: its value if it is left out; None if it may not be.
    """

    name: str
    description: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class PromptText:
    """A prompt.

    Attributes:
        name: its name.
        title: its name for people.
        description: what it is for.
        arguments: what it takes.
        text: the message, with `{argument}` where the arguments belong.
    """

    name: str
    title: str
    description: str
    arguments: Sequence[Argument]
    text: str

    def shown(self) -> Prompt:
        """The prompt as hosts list it."""
        arguments = [
            PromptArgument(name=one.name, description=one.description, required=one.default is None)
            for one in self.arguments
        ]
        return Prompt(
            name=self.name, title=self.title, description=self.description, arguments=arguments
        )

    def message(self, given: Mapping[str, str]) -> str:
        """The message for some arguments.

        Raises:
            ToolError: one is missing, unknown or very long.
        """
        known = {one.name: one for one in self.arguments}
        for name, value in given.items():
            if name not in known:
                raise ToolError(
                    f"The prompt {self.name} takes {', '.join(known)}; not {name!r:.60}."
                )
            if len(value) > MAX_ARGUMENT_CHARS:
                raise ToolError(f"{name} has more than {MAX_ARGUMENT_CHARS:,} characters.")
        values = {name: given.get(name) or one.default for name, one in known.items()}
        missing = next((name for name, value in values.items() if value is None), None)
        if missing is not None:
            about = known[missing].description
            raise ToolError(f"The prompt {self.name} needs {missing}: {about}")
        return self.text.format(**values)


PROMPTS: dict[str, PromptText] = {
    one.name: one
    for one in (
        PromptText(
            "answer_from_documents",
            "Answer from my documents",
            "Answer a question from a collection of documents, with citations.",
            (
                Argument("collection", "The collection to search."),
                Argument("question", "The question."),
            ),
            "Answer this question from the documents in the collection {collection!r} alone:\n\n"
            "{question}\n\n"
            "Call the tool `search` with the question, and again with other words if the passages do not "
            "answer it. Cite the file of every statement. If the documents do not answer the question, "
            "say so.",
        ),
        PromptText(
            "second_opinion",
            "Ask the local model for a second opinion",
            "Let the local model answer the same question, and compare.",
            (Argument("question", "The question."),),
            "Answer this question yourself first:\n\n{question}\n\n"
            "Then call the tool `chat` with the same question and everything needed to answer it, compare "
            "the two answers, and say where they differ and which is right.",
        ),
        PromptText(
            "classify",
            "Classify texts",
            "Put each text into one of several classes, with probabilities.",
            (
                Argument("texts", "The texts, one a line."),
                Argument("classes", "The classes, separated by commas."),
            ),
            "Classify each of these texts into one of the classes {classes}:\n\n{texts}\n\n"
            "Call the tool `decide` once for each text with the kind `choice` and the classes as options. "
            "Show a table with text, class and probability, and mark what the tool is not sure of.",
        ),
        PromptText(
            "audit_code",
            "Audit code with an agent",
            "Run an auditing agent over files and explain what it found.",
            (
                Argument("paths", "The files or folders, separated by commas."),
                Argument("agent", "The agent, as `list_agents` shows them.", "auth_audit"),
            ),
            "Run the agent {agent!r} over {paths} with the tool `run_agent`. Explain each finding in a "
            "sentence, the most severe first, check it in the code if you can read it, and propose a "
            "change for what is right.",
        ),
    )
}
