"""The table of slash commands, for the screen and for line mode.

The parser, the help, the palette and the documentation (`docs/make_tables.py`) read it. A front end has one
method per command, named after it; on the screen a command may also be the action of a key. The table says
why a front end has none.
"""

import re
from dataclasses import dataclass
from typing import Literal

FrontEnd = Literal["screen", "plain"]

_CHOICES = re.compile(r"\[[a-z]+(\|[a-z]+)*\]|[a-z]+(\|[a-z]+)*")


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    Attributes:
        argument: the argument as shown in help, in brackets if it may be left out; empty if there is none.
            Words in lower case are what it may be, those in capitals stand for something.
        key: the key of the screen that does the same, by its name.
        not_on_screen: why the screen does not have the command; empty if it has.
        not_plain: why line mode does not have it; empty if it has.
    """

    name: str
    help: str
    argument: str = ""
    key: str = ""
    not_on_screen: str = ""
    not_plain: str = ""

    @property
    def needs_argument(self) -> bool:
        """Whether the command is refused without an argument."""
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def choices(self) -> tuple[str, ...]:
        """The only arguments that there are; empty if it takes others, too."""
        return (
            tuple(self.argument.strip("[]").split("|")) if _CHOICES.fullmatch(self.argument) else ()
        )

    def missing_in(self, front_end: FrontEnd) -> str:
        """Why a front end does not have the command; empty if it has."""
        return self.not_on_screen if front_end == "screen" else self.not_plain


COMMANDS: tuple[Command, ...] = (
    Command("new", "start a new conversation", "[TEXT]"),
    Command("resume", "list conversations, those that contain WORDS, or open number N", "[WORDS|N]"),
    Command("rename", "rename this conversation", "TITLE"),
    Command("delete", "archive this conversation"),
    Command("archive", "list archived conversations; in line mode, N brings one back", "[N]"),
    Command("gc", "delete all archived conversations for good; asks first", "[yes]"),
    Command("tree", "show the branches of this conversation", key="tree.toggle"),
    Command("fork", "begin a branch after a message; with MODEL, that model answers it", "[N] [MODEL]"),
    Command("switch", "go to a branch by its name, or to message N", "NAME|N"),
    Command("branch", "name the open branch", "NAME"),
    Command("label", "label a message", "[TEXT]"),
    Command("expand", "generate several answers side by side; 4 without a number", "[COUNT]"),
    Command("compare", "show where two messages differ", "A B",
            not_on_screen="Mark two messages with space and press c."),
    Command("prune", "hide a message and all below it; /undo brings them back", "[N]"),
    Command("promote", "make a branch the main one", "[N]"),
    Command("merge", "bring BRANCH into the open one by graft, summary or pick", "[KIND] [BRANCH]"),
    Command("undo", "undo the last operation on this conversation", key="undo"),
    Command("redo", "redo what was undone", key="redo"),
    Command("search", "find messages in every branch of every conversation", "[WORDS]"),
    Command("shorten", "leave earlier messages out of the context, or summarise them", "drop|summarise"),
    Command("system", "show or set the system prompt", "[TEXT|clear]"),
    Command("model", "choose a model, or load the named one; of several, the one of this branch, or load, "
            "unload or reload NAME; in line mode, list them", "[load|unload|reload] [NAME]"),
    Command("download", "search a hub for models by their names, download one and load it",
            "[WORDS|ORG/NAME]", not_plain="`pravaha models add` downloads a model."),
    Command("think", "let models that think do so or not, harder, or for at most N tokens; end it now",
            "on|off|EFFORT|N|default|end",
            not_plain="Line mode leaves thinking to the model."),
    Command("sampling", "edit sampling parameters, or set them; in line mode, list them", "[NAME=N]"),
    Command("settings", "list all settings, or open one at its place", "[NAME]",
            not_plain="/sampling sets those of the conversation; docs/settings.md lists all."),
    Command("regen", "regenerate the last answer", key="regen"),
    Command("stop", "stop the answer", key="stop", not_plain="Ctrl+C stops an answer."),
    Command("history", "print this conversation", not_on_screen="It is on the screen."),
    Command("sources", "show the collections of documents, create, fill, watch, attach, detach or delete one",
            "[create|add|refresh|watch|attach|remove NAME…|evidence X|stop]"),
    Command("anyway", "have the last message answered that the attached documents do not seem to answer",
            key="answer_anyway"),
    Command("attach", "add a document, text or image to the message; @FILE in the text does the same",
            "FILE"),
    Command("apply", "show what the last answer with code for a file changes there, and apply it, test it or "
            "take it back", key="edit.open", not_plain="Line mode changes no files."),
    Command("export", "write this conversation to FILE.json, .jsonl, .md or .messages.json", "FILE"),
    Command("import", "open a conversation or message list from a .json or .jsonl file; /delete archives it",
            "FILE"),
    Command("copy", "copy the last answer, a code block, or the whole branch", "[code|branch]",
            not_plain="Line mode has no clipboard: select the text in the terminal."),
    Command("kv", "show the KV blocks", key="pane.kv", not_plain="/stats prints the number of KV blocks."),
    Command("stats", "show the engine's stats", key="pane.stats"),
    Command("agents", "show the agents, or run one (or a pipeline) on files: /agents security_audit src",
            "[NAME [PATH…] [: TASK]]", not_plain="`pravaha agents run` runs an agent."),
    Command("memory", "list what the agents remember, or search, forget or export it",
            "[search WORDS|forget ID…|export FILE]"),
    Command("tools", "list the tools that the model may call in this chat, choose some, or switch them off",
            "[on|off|NAME…]", not_plain="The field tool_loop of the server has tools without a screen."),
    Command("approve", "open the oldest tool call that waits for your approval",
            not_plain="`pravaha agents run --approve ask` asks in the terminal."),
    Command("serve", "serve this engine to programs of this machine over HTTP; off ends it", "[PORT|off]",
            not_plain="`pravaha --serve` serves an engine."),
    Command("theme", "choose a theme, or name one", "[NAME]", not_plain="Line mode has no colours."),
    Command("mouse", "use the mouse here, or leave it to the terminal to select text (shift+drag does, too)",
            "on|off", not_plain="Line mode does not use the mouse."),
    Command("keys", "show every key and command", key="help",
            not_plain="Ctrl+C stops an answer; /help lists the commands."),
    Command("help", "show the commands", key="help"),
    Command("quit", "quit", key="quit"),
)  # fmt: skip
