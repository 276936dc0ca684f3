"""The line-mode chat: reads a line, prints the answer as it is generated, reads the next line.

Writes only text and newlines: no cursor movement, boxes, colours or escape sequences. Model output
passes through `SafeStream`, which removes escape sequences.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from app.plain.commands import PlainCommands
from app.plain.images import PlainImages
from app.plain.sources import PlainSources
from app.slash import parse
from app.slash.attachments import attach_files, check_all_fit, mention, unread_files
from app.slash.mentions import unknown_name, with_whole_names
from app.slash.token_count import count_tokens
from app.text.continued_text import build_continues
from app.text.safe_text import SafeStream, safe_line, safe_text
from engine.api.errors import EngineUnavailable, InvalidRequest, PravahaError
from engine.api.image import Image
from engine.api.snapshot import EngineState
from engine.clients.engine_client import EngineClient
from engine.conversations.answer import CONTENT_FILTER, REPETITION
from engine.conversations.errors import ContextFull
from engine.conversations.node_words import FILTERED, INCOMPLETE
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind, NodeStatus, NodeView
from engine.retrieval.parsing.document_reader import DocumentReader

if TYPE_CHECKING:
    from app.runtime.source_library import SourceLibrary
    from engine.retrieval.parsing.image_reader import ImageReader

_WAKE_S = 0.5
"""Maximum time between two looks at the session, in case a wake-up is missed."""


class RefusedMessage(NamedTuple):
    """A message that the context has no room for."""

    text: str
    images: tuple[Image, ...]


class PlainChat:
    """The loop; the commands are in `PlainCommands`.

    Args:
        session: the conversations.
        client: the engine, for figures and wake-ups.
        read: shows the prompt and returns the next line without its newline; raises EOFError at the end.
        out: the stream that answers are written to.
        show_prompts: whether input is interactive: then prompts and remarks are printed.
        memory_file: what the agents remember; None for none.
        sources: the collections of documents; None for none.
        image_reader: reads the text of images; None reads none.
        attached: whether the engine is that of a server.

    Attributes:
        session: the conversations.
        client: the engine.
    """

    def __init__(
        self,
        session: TreeSession,
        client: EngineClient,
        *,
        read: Callable[[str], str],
        out: TextIO,
        show_prompts: bool,
        memory_file: Path | None = None,
        sources: "SourceLibrary | None" = None,
        image_reader: "ImageReader | None" = None,
        attached: bool = False,
    ) -> None:
        self.session = session
        self.client = client
        self.memory_file = memory_file
        self._read = read
        self._out = out
        self._show_prompts = show_prompts
        self._wake = threading.Event()
        self._failed = False
        self._ended = False
        self._refused: RefusedMessage | None = None
        self._attached: list[str] = []
        self._warned = ""
        self._told_about = ""  # the loaded model last looked at
        self._documents = DocumentReader()
        self.sources = PlainSources(sources, session, self.say)
        self._images = PlainImages(image_reader, client, attached=attached)
        self._commands = PlainCommands(self)
        client.on_wake(self._wake.set)
        if sources is not None:
            sources.on_wake(self._wake.set)

    def run(self) -> bool:
        """Chat until `/quit` or the end of input; False if a message or command failed."""
        if self._show_prompts:
            self.say("Pravāha, plain chat. /help lists commands, /quit quits.")
            if self.session.path():
                self.say(f"Conversation: {safe_line(self.session.title)} (/history prints it)")
        while True:
            self._notice()
            try:
                line = self._read_message()
            except EOFError:
                return not self._failed
            try:
                self._execute(line)
            except PravahaError as error:
                self._fail(str(error))
            if self._ended:
                return not self._failed

    def stop(self) -> None:
        """Stop the running answers. For a signal handler."""
        for node_id in self.session.answers.running:
            self.session.answers.stop(node_id)
        self._wake.set()

    def _read_message(self) -> str:
        """A line together with its continuation lines."""
        line = self._read("You: " if self._show_prompts else "")
        while line.endswith("\\"):
            line = line[:-1] + "\n" + self._read("...: " if self._show_prompts else "")
        return line

    def send(self, text: str) -> None:
        """Send a message; its answer is printed when the command or line is done.

        Raises:
            PravahaError: it was not sent. One that names what nobody knows is, when it is sent again; a pipe
                cannot be asked.
        """
        if "@" in text:
            text = self._with_known_names(text)
        if self.sources.attach_mentioned(text):
            return
        text = " ".join([*self._attached, text])
        if self._images.named(text):
            while self.client.snapshot().state is EngineState.LOADING:
                self.wait_for_engine()  # until it is known whether the model sees them
        read = self._images.read(text)
        text = self._expanded(read.text)
        self._attached = []
        try:
            self.session.messages.send(text, images=read.images)
        except ContextFull as error:
            self.refuse(RefusedMessage(text, read.images))
            raise InvalidRequest(
                "The message does not fit into the context with all earlier ones. /shorten drop leaves "
                "earlier messages out and sends it, /shorten summarise puts a summary in their place."
            ) from error
        except EngineUnavailable as error:
            if self.client.snapshot().state is EngineState.UNLOADED:
                raise EngineUnavailable(f"{error} /model NAME loads another one.") from error
            raise
        self._refused = None
        for image in read.readings if self._show_prompts else ():
            self.say(f"({safe_line(image.remark)})")
        sent = [node for node in self.session.path() if node.kind is NodeKind.USER][-1:]
        for node in sent:
            self._say_remarks(node)

    def attach(self, name: str) -> None:
        """Add a file to the next message.

        Raises:
            InvalidRequest: it cannot be attached.
        """
        self._images.named(f'@"{name}"')
        self._expanded(f'@"{name}"')
        self._attached.append(mention(name))

    def _with_known_names(self, text: str) -> str:
        """The message with whole names in place of their beginnings."""
        collections = self.sources.names
        text = with_whole_names(text, (), collections)
        problem = unknown_name(text, (), collections) if self._show_prompts else ""
        if problem and text != self._warned:
            self._warned = text
            raise InvalidRequest(f"{problem} The same line again sends it as it is.")
        self._warned = ""
        return text

    def _expanded(self, text: str) -> str:
        """The message with the text of the files that it names; waits until they are read."""
        paths = unread_files(text) if "@" in text else []
        if not paths:
            return text
        reading = [self._documents.read(path) for path in paths]
        files = dict(zip(paths, (one.result() for one in reading), strict=True))
        model = self.client.snapshot().model
        length = model.context_length if model else 0
        check_all_fit(
            list(files.values()),
            lambda one: count_tokens(self.client, one),
            length,
            length - self.session.context.used(),
        )
        for file in files.values() if self._show_prompts else ():
            for note in file.notes:
                self.say(f"({safe_line(file.name)}: {safe_line(note)})")
        return attach_files(text, files)

    def refuse(self, message: RefusedMessage) -> None:
        """Keep a message that the context has no room for, until /shorten."""
        self._refused = message

    def take_refused(self) -> RefusedMessage | None:
        """The message that was refused last, once; None if another was sent since."""
        message, self._refused = self._refused, None
        return message

    def quit(self) -> None:
        """End the chat after this line."""
        self._ended = True

    def wait_for_engine(self) -> None:
        """Wait until the engine's state may have changed, `_WAKE_S` at most."""
        self._wake.wait(_WAKE_S)
        self._wake.clear()

    def wait_for(self, node_ids: Sequence[str]) -> None:
        """Wait until these answers have finished."""
        while set(node_ids) & set(self.session.answers.running):
            if not self.session.pump():
                self.wait_for_engine()

    def _execute(self, line: str) -> None:
        """Send a message or run a command, and print the answer that it began."""
        match parse.read(line, "plain"):
            case parse.Refused(sentence):
                self._fail(sentence)
            case parse.Plain(text):
                if text.strip():
                    self.send(text)
            case parse.Invocation(command, argument):
                self._commands.run(command.name, argument)
        self._print_answers()

    def _print_answers(self) -> None:
        """Print the running answer and those of the messages queued after it."""
        while self.session.answers.generating:
            if self._lacks_model():
                error = self.client.snapshot().last_error or "No model is loaded."
                self._fail(f"{error} /model NAME loads another, and the message is sent.")
                return
            self._print_answer(self.session.head)

    def _print_answer(self, node_id: str | None) -> None:
        """Print an answer until it finishes, or until there is no model for it."""
        safe = SafeStream()
        if self._show_prompts:
            self._write("Pravāha: ")
        last = None
        thinks = False
        while self.session.answers.generating and self.session.head == node_id:
            deltas = self.session.pump()
            if (
                not thinks
                and self._show_prompts
                and node_id
                and self.session.view(node_id).n_reasoning
            ):
                thinks = True
                self._write("(thinking) ")
            for delta in deltas:
                if delta.node_id == node_id:
                    self._write(safe.feed(delta.text))
                    last = delta
            if self.session.answers.generating and not deltas:
                if self._lacks_model():
                    break
                self.wait_for_engine()
        self._write(safe.flush() + "\n")
        if last is not None and last.status is NodeStatus.ERROR:
            self._fail(last.error or "The answer failed.")
        elif last is not None and last.finish == REPETITION:
            self.say("(stopped: repetition; /regen to retry)")
        elif last is not None and last.finish == CONTENT_FILTER:
            self.say(f"({FILTERED})")
        elif last is not None and last.status is NodeStatus.STOPPED and self._show_prompts:
            self.say("(stopped; the text so far is kept)")
        elif last is not None and last.finish in INCOMPLETE and self._show_prompts:
            self.say(f"({INCOMPLETE[last.finish]})")
        if node_id is not None and node_id in self.session.tree:
            self._say_remarks(self.session.view(node_id))
            if self._show_prompts:
                self.sources.say_citations(node_id)

    def _say_remarks(self, node: NodeView) -> None:
        """Print what the guardrails say about a message; a pipe gets the answers alone."""
        for remark in node.remarks if self._show_prompts else ():
            self.say(f"(guardrails: {remark})")

    def _lacks_model(self) -> bool:
        """Whether the answer waits for a model that the user has to choose."""
        unsent = self.session.answers.request_id is None
        return unsent and self.client.snapshot().state is EngineState.UNLOADED

    # Output.

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def say(self, line: str) -> None:
        """Print a line."""
        self._write(line + "\n")

    def _fail(self, sentence: str) -> None:
        self._failed = True
        self.say(f"Error: {safe_text(sentence)}")

    def _notice(self) -> None:
        notice = self.session.writes.take_notice()
        if notice is not None:
            self.say(f"Note: {safe_text(notice)}")
        model = self.client.snapshot().model
        if model is not None and model.name != self._told_about:
            self._told_about = model.name
            if model.continues_text and self._show_prompts:
                self.say(f"Note: {build_continues(model)}")
        self.sources.say_news()
