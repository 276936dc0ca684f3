"""`ChosenModel`: the one of several models that answers the open branch.

A branch goes on with the model that was chosen last on its path; where none was, with that of its last
answer. The choice belongs to the message at the end of the branch: whatever goes on from there has it. It is
saved, and can be undone once the conversation has a message.
"""

from engine.api.errors import ModelNotFound
from engine.clients.model_set import ModelSet
from engine.conversations.answering import Answering
from engine.conversations.assignment import Assignment
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.storage.store import Store


class ChosenModel:
    """The model of the open branch. Used by the session's thread.

    Args:
        store: where choices are saved.
        loaded: the conversations in memory.
        answering: knows which model goes on after a path.
        models: the models to choose from; None if there is one engine, whose model is changed instead.
    """

    def __init__(
        self,
        store: Store,
        loaded: LoadedConversations,
        answering: Answering,
        models: ModelSet | None,
    ) -> None:
        self._store = store
        self._loaded = loaded
        self._answering = answering
        self.several = models

    @property
    def current(self) -> str | None:
        """The model of the next answer on the open path; None if there is one engine."""
        if self.several is None:
            return None
        conversation = self._loaded.current
        running = conversation.answer
        if running is not None and running.wanted_model is not None:
            return conversation.tree.chosen_model(running.node_id) or running.wanted_model
        return self._answering.model_after(conversation, conversation.nodes) or self.several.primary

    def shows(self, node_id: str) -> bool:
        """Whether the model of the open branch is the one that goes on after a node."""
        if self.several is None:
            return True
        conversation = self._loaded.current
        path = [conversation.tree[one] for one in conversation.tree.path(node_id)]
        after = self._answering.model_after(conversation, path) or self.several.primary
        return after == self.current

    def choose(self, name: str) -> bool:
        """Answer the open branch by a model from here on; False if it is answered by it already.

        A running answer goes on with its own model, which answers the results of its tools, too.

        Raises:
            ModelNotFound: there is no such model.
            InvalidRequest: another process is answering in the conversation.
            ConversationChanged: another process has added to it.
        """
        if self.several is None or not self.several.has(name):
            raise ModelNotFound(f"There is no model {name:.80} to choose.")
        if name == self.current:
            return False
        with self._loaded.writing() as conversation:
            changes = [Assignment("model", conversation.head or "", name)]
            if conversation.saved:
                self._store.operations.assign(conversation.id, "choose a model", changes)
            conversation.tree.apply(changes)
            conversation.version += 1
        return True
