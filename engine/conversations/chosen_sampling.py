"""`ChosenSampling`: the sampling parameters of the next answer on the open path; see `branch_sampling`."""

from engine.api.generation_defaults import SamplingChoice
from engine.conversations.branch_sampling import Changes, change, restored, set_again
from engine.conversations.loaded_conversations import LoadedConversations


class ChosenSampling:
    """The sampling parameters of the open conversation's branches. Used by the session's thread.

    Args:
        loaded: the conversations in memory, which keep what was set for their branches.
        default: see the attribute.

    Attributes:
        default: sampling parameters of branches that set none.
    """

    def __init__(self, loaded: LoadedConversations, default: SamplingChoice) -> None:
        self._loaded = loaded
        self.default = default

    @property
    def current(self) -> SamplingChoice:
        """The parameters of the next answer on the open path."""
        conversation = self._loaded.current
        chosen = conversation.sampling.get(conversation.head or "")
        if chosen is None and conversation.answer is not None:
            chosen = set_again(self.default, conversation.answer.sampling)
        return chosen or restored(self.default, conversation.nodes)

    def change(self, changes: Changes) -> None:
        """Set parameters of the open branch, or leave them to the settings again.

        Raises:
            InvalidRequest: a value is out of range; nothing was changed.
        """
        conversation = self._loaded.current
        changed = change(self.current, self.default, changes)
        conversation.sampling[conversation.head or ""] = changed
