"""The slash commands of line mode, one method for each command of the table in `app.slash.commands`."""

import time
from typing import TYPE_CHECKING

from app.plain import models
from app.plain.outline import NodeNumbers, build_comparison, build_outline
from app.runtime.imported_passages import build_imported
from app.slash.arguments import (
    change_system,
    find_title,
    read_branch,
    read_expansion,
    read_fork,
    read_merge,
)
from app.slash.files import export_to_file, import_from_file
from app.slash.memory import run_memory
from app.slash.parse import available, method_name
from app.slash.sampling import build_parameters, build_summary, change_sampling
from app.text.safe_text import safe_line, safe_text
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.matching_line import matching_line
from engine.conversations.node_words import ROLES
from engine.conversations.shortening import send_shortened
from engine.conversations.tree import NodeStatus, NodeView, SearchHit, TreeSummary

if TYPE_CHECKING:
    from app.plain.repl import PlainChat

_HITS = 20
"""Most search results that are printed."""


class PlainCommands:
    """Runs commands over the session of a chat. Each method gets the argument text.

    Args:
        chat: prints; an answer that a command begins is printed by it, too.
    """

    def __init__(self, chat: "PlainChat") -> None:
        self._chat = chat
        self._session = chat.session
        self._numbers: dict[str, NodeNumbers] = {}
        self._listed: list[TreeSummary | SearchHit] = []

    def run(self, name: str, argument: str) -> None:
        """Run a command of the table.

        Raises:
            PravahaError: the command failed.
        """
        getattr(self, method_name(name))(argument)

    # Conversations.

    def new(self, argument: str) -> None:
        """Start a new conversation; send the text if there is one."""
        self._session.conversations.open_new()
        self._say("A new conversation.")
        if argument:
            self._chat.send(argument)

    def resume(self, argument: str) -> None:
        """List conversations, or open number N of the list that was printed last."""
        if argument.isdecimal():
            self._open(int(argument))
            return
        titled = find_title(self._session.conversations.find(), argument)
        if titled is not None:
            self._session.conversations.open(titled.id)
            self._say(f"Conversation: {safe_line(self._session.title)}")
            return
        trees = self._session.conversations.find(argument)
        self._listed = list(trees)
        if not trees:
            self._say("No conversations." if not argument else "No conversation contains that.")
        for number, tree in enumerate(trees, start=1):
            self._say(f"{number}. {self._described(tree)}")

    def rename(self, title: str) -> None:
        """Rename this conversation."""
        self._session.conversations.rename(self._session.tree_id, title)
        self._say(f"Conversation: {safe_line(self._session.title)}")

    def delete(self, _: str) -> None:
        """Archive this conversation."""
        title = self._session.title
        self._session.conversations.archive(self._session.tree_id)
        self._say(f"Archived: {safe_line(title)}")

    def archive(self, argument: str) -> None:
        """List archived conversations, or bring number N back."""
        trees = self._session.conversations.find(archived=True)
        if not argument:
            for number, tree in enumerate(trees, start=1):
                self._say(f"{number}. {self._described(tree)}")
            self._say("/archive N brings one back." if trees else "The archive is empty.")
            return
        if not argument.isdecimal() or not 1 <= int(argument) <= len(trees):
            raise InvalidRequest(f"/archive takes a number from 1 to {len(trees)}.")
        tree = trees[int(argument) - 1]
        self._session.conversations.unarchive(tree.id)
        self._say(f"Brought back: {safe_line(tree.title)}")

    def gc(self, argument: str) -> None:
        """Delete all archived conversations for good, if the argument is `yes`."""
        trees = self._session.conversations.find(archived=True)
        if not trees:
            self._say("The archive is empty.")
        elif argument != "yes":
            self._say(
                f"Archived conversations: {len(trees)}. /gc yes deletes them for good; that cannot be "
                "undone."
            )
        else:
            count = self._session.conversations.erase([tree.id for tree in trees])
            self._say(f"Conversations deleted: {count}.")

    def search(self, words: str) -> None:
        """Print the messages that contain the words, in every branch; /resume N opens one."""
        if not words:
            raise InvalidRequest("/search needs words to look for.")
        hits = self._session.conversations.find_messages(words)
        self._listed = list(hits[:_HITS])
        if not hits:
            self._say("No message contains that.")
        for number, hit in enumerate(hits[:_HITS], start=1):
            line = safe_line(matching_line(hit.text, words).text)
            self._say(
                f"{number}. {safe_line(hit.title)}, {_date(hit.created_at)}. {ROLES[hit.kind]}: {line}"
            )
        if len(hits) > _HITS:
            self._say(f"{_HITS} of {len(hits)} found messages.")
        if hits:
            self._say("/resume N opens one.")

    def history(self, _: str) -> None:
        """Print the messages of the open path."""
        path = self._session.path()
        if not path:
            self._say("This conversation is empty.")
        for node in path:
            self._say(f"{ROLES[node.kind]}: {safe_text(node.text)}{_status_remark(node)}")
            for remark in node.remarks:
                self._say(f"(guardrails: {remark})")

    def sources(self, argument: str) -> None:
        """List the collections of documents; create, fill, attach, detach or delete one."""
        self._chat.sources.run(argument)

    def attach(self, argument: str) -> None:
        """Add a file to the next message."""
        self._chat.attach(argument)
        self._say("The file goes with your next message.")

    def export(self, argument: str) -> None:
        """Write the conversation to a file."""
        self._say(f"Written: {safe_line(str(export_to_file(self._session, argument)))}")

    def import_(self, argument: str) -> None:
        """Read a conversation from a file and open it."""
        import_from_file(self._session, argument)
        self._say(f"Conversation: {safe_line(self._session.title)}")
        if notice := build_imported(self._session):
            self._say(f"({safe_line(notice)})")

    # Branches.

    def tree(self, _: str) -> None:
        """Print all messages as an outline; their numbers stay the same."""
        lines = build_outline(self._session.tree, self._numbers_here)
        for line in lines or ["This conversation is empty."]:
            self._say(line)

    def fork(self, argument: str) -> None:
        """Begin a branch after a message."""
        number, model = read_fork(argument)
        if model:
            raise InvalidRequest(
                f"Line mode has one model: /model {model} loads it for the answers from there on."
            )
        name = self._session.branches.fork(self._node(number))
        self._say(f"Branch {safe_line(name)} begins here. Your next message goes on from it.")

    def switch(self, argument: str) -> None:
        """Go to a branch by name, or to a message by number."""
        named = read_branch(self._session.tree, argument)
        if named is not None:
            self._session.branches.rewind(named)
        else:
            self._session.branches.adopt(self._node(argument))
        self._here()

    def branch(self, name: str) -> None:
        """Name the open branch."""
        self._session.branches.rename_branch(name)
        self._say(f"This branch is named {safe_line(name)}.")

    def label(self, text: str) -> None:
        """Label the last message of the open path."""
        self._session.branches.label(self._node(""), text)
        self._say(f"Labelled {safe_line(text)}." if text else "The label is removed.")

    def expand(self, argument: str) -> None:
        """Generate several answers and print each in turn with its number."""
        ids = self._session.branches.expand(read_expansion(argument))
        self._chat.wait_for(ids)
        for node_id in ids:
            node = self._session.view(node_id)
            number = self._numbers_here.of(node_id)
            self._say(f"Answer {number}: {safe_text(node.text)}{_status_remark(node)}")
        self._say("/switch N goes on from one of them.")

    def compare(self, argument: str) -> None:
        """Print where two messages differ."""
        numbers = argument.split()
        if len(numbers) != 2:
            raise InvalidRequest("/compare takes the numbers of two messages: see /tree.")
        one, other = (self._session.view(self._node(number)) for number in numbers)
        names = (f"message {numbers[0]}", f"message {numbers[1]}")
        for line in build_comparison(safe_text(one.text), safe_text(other.text), names):
            self._say(line)

    def prune(self, argument: str) -> None:
        """Hide a message and all below it."""
        count = self._session.branches.prune(self._node(argument))
        self._say(f"Hidden messages: {count}. /undo brings them back.")
        self._here()

    def promote(self, argument: str) -> None:
        """Make a branch the main one."""
        self._session.branches.promote(self._node(argument))
        self._say("This is the main branch now.")

    def merge(self, argument: str) -> None:
        """Merge a branch, by name or by the number of its last message, into the open one."""
        kind, name = read_merge(argument)
        if kind is None or not name:
            raise InvalidRequest(
                "/merge takes graft, summary or pick, and a branch or the number of its last message."
            )
        named = read_branch(self._session.tree, name)
        node_id = named if named is not None else self._node(name)
        price = self._session.tokens.price(node_id).result() if kind == "summary" else None
        cost = self._session.merging.cost(node_id, kind, price)
        self._say(self._session.merging.merge(node_id, kind))
        self._say(
            f"Only the common prefix shares KV: {cost.recomputed} of {cost.total} tokens recomputed."
        )

    def undo(self, _: str) -> None:
        """Undo the last operation."""
        name = self._session.operations.undo()
        self._say("Nothing to undo." if name is None else f"Undone: {name}.")

    def redo(self, _: str) -> None:
        """Redo what was undone."""
        name = self._session.operations.redo()
        self._say("Nothing to redo." if name is None else f"Redone: {name}.")

    # Answers.

    def shorten(self, argument: str) -> None:
        """Shorten the context, and send the message that it had no room for, if there is one."""
        summarised = argument == "summarise"
        refused = self._chat.take_refused()
        if refused is None:
            self._session.context.shorten(summarised=summarised)
        else:
            model = self._chat.client.snapshot().model
            length = model.context_length if model else 0
            try:
                send_shortened(
                    self._session,
                    refused.text,
                    summarised=summarised,
                    length=length,
                    images=refused.images,
                )
            except PravahaError:
                self._chat.refuse(refused)
                raise
        self._say(
            "The model summarises the earlier messages."
            if summarised
            else "Earlier messages are left out of the context."
        )

    def system(self, argument: str) -> None:
        """Show, set or clear the system prompt."""
        prompt = change_system(self._session, argument)
        self._say(
            "There is no system prompt." if prompt is None else f"System: {safe_text(prompt)}"
        )

    def regen(self, _: str) -> None:
        """Regenerate the last answer."""
        self._session.branches.regenerate()

    def anyway(self, _: str) -> None:
        """Have the last message answered, though the attached documents do not seem to answer it."""
        self._session.branches.ask_anyway()

    def model(self, argument: str) -> None:
        """List the installed models, or load the named one and wait for it."""
        client = self._chat.client
        if argument:
            models.load(client, argument, say=self._say, wait=self._chat.wait_for_engine)
            return
        self._say(models.build_model(client.snapshot()))
        for line in models.build_models(client.models()):
            self._say(line)
        self._say("/model NAME loads another one.")

    def sampling(self, argument: str) -> None:
        """List the sampling parameters, or set them as `NAME=VALUE`; `reset` leaves all to the model."""
        session = self._session
        if argument:
            change_sampling(session, argument)
            self._say(build_summary(session.sampling.current))
            return
        model = self._chat.client.snapshot().model
        for line in build_parameters(session.sampling.current, session.sampling.default, model):
            self._say(line)

    def memory(self, argument: str) -> None:
        """List, search, forget or export what the agents remember."""
        if self._chat.memory_file is None:
            raise InvalidRequest("This chat has no memory.")
        for line in run_memory(self._chat.memory_file, argument):
            self._say(line)

    def stats(self, _: str) -> None:
        """Print the engine's figures."""
        snapshot = self._chat.client.snapshot()
        self._say(models.build_model(snapshot))
        if snapshot.model is None:
            return
        used, length = self._session.context.used(), snapshot.model.context_length
        self._say(f"Context: {used} of {length} tokens")
        self._say(f"KV blocks: {snapshot.blocks.active} of {snapshot.blocks.total} in use")
        rate = snapshot.rates.decode_tokens_per_second
        self._say(f"Decoding: {rate:.1f} tokens/s in the last seconds")

    def help(self, _: str) -> None:
        """Print the commands."""
        for command in available("plain"):
            self._say(f"/{command.name} {command.argument}".strip() + f": {command.help}")
        self._say(
            "A line that ends with \\ continues in the next; // sends a slash; Ctrl+C stops an answer."
        )

    def quit(self, _: str) -> None:
        """End the chat."""
        self._chat.quit()

    # Internal.

    def _say(self, line: str) -> None:
        self._chat.say(line)

    def _here(self) -> None:
        """Print where the conversation is open."""
        path = self._session.path()
        if not path:
            self._say("This conversation is empty.")
            return
        node = path[-1]
        number = self._numbers_here.of(node.id)
        self._say(f"You are at message {number}. {ROLES[node.kind]}: {safe_text(node.text)}")

    def _open(self, number: int) -> None:
        if not self._listed:
            self._listed = list(self._session.conversations.find())
        if not 1 <= number <= len(self._listed):
            raise InvalidRequest(
                f"/resume takes a number from 1 to {len(self._listed)}: without one it lists them."
            )
        chosen = self._listed[number - 1]
        if isinstance(chosen, TreeSummary):
            self._session.conversations.open(chosen.id)
            self._say(f"Conversation: {safe_line(self._session.title)}")
            return
        self._session.conversations.open(chosen.tree_id)
        if all(node.id != chosen.node_id for node in self._session.path()):
            self._session.branches.adopt(chosen.node_id)
        self._say(f"Conversation: {safe_line(self._session.title)}")
        self._here()

    @property
    def _numbers_here(self) -> NodeNumbers:
        """The numbers of the open conversation, in which all its messages have one."""
        numbers = self._numbers.setdefault(self._session.tree_id, NodeNumbers())
        tree = self._session.tree
        ids = [one for root in tree.children(None) for one in tree.subtree(root)]
        for node_id in sorted(ids):  # ids sort in order of creation
            numbers.of(node_id)
        return numbers

    def _node(self, argument: str) -> str:
        """The message of a number of the outline; without one, the last message of the open path."""
        if not argument:
            if self._session.head is None:
                raise InvalidRequest("The conversation is empty: send a message first.")
            return self._session.head
        found = self._numbers_here.find(argument)
        if found is None:
            raise InvalidRequest(f"There is no message or branch {argument}: see /tree.")
        return found

    def _described(self, tree: TreeSummary) -> str:
        here = ", open" if tree.id == self._session.tree_id else ""
        return f"{safe_line(tree.title)} ({tree.messages} messages, {_date(tree.updated_at)}{here})"


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _status_remark(node: NodeView) -> str:
    """A remark on an answer that was stopped or failed; otherwise empty."""
    if node.status is NodeStatus.STOPPED:
        return " (stopped)"
    if node.status is NodeStatus.ERROR:
        return f" (failed: {safe_line(node.error or '')})"
    return ""
