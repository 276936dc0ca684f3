"""`RunningAnswers`: the answers of the open conversation that are in generation."""

from engine.conversations.answer import REPETITION
from engine.conversations.answering import Answering
from engine.conversations.loaded_conversations import LoadedConversations
from engine.conversations.thinking import Thinking


class RunningAnswers:
    """The running answers of the open conversation. Used by the session's thread."""

    def __init__(self, loaded: LoadedConversations, answering: Answering) -> None:
        self._loaded = loaded
        self._answering = answering

    @property
    def generating(self) -> bool:
        """Whether an answer runs at the end of the open path."""
        return self._loaded.current.answer is not None

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of all nodes of the open conversation whose answer runs."""
        return tuple(self._loaded.current.answers)

    @property
    def request_id(self) -> str | None:
        """The request of the answer that runs at the end of the open path, or None."""
        answer = self._loaded.current.answer
        return None if answer is None else self._answering.reading_id(answer)

    @property
    def stopped_for_repetition(self) -> bool:
        """Whether the open path ends with an answer that was stopped because it repeated itself."""
        nodes = self._loaded.current.nodes
        return bool(nodes) and not self.generating and nodes[-1].finish == REPETITION

    @property
    def thinking(self) -> Thinking:
        """What is asked of models that reason, from the next answer on."""
        return self._answering.thinking

    @thinking.setter
    def thinking(self, thinking: Thinking) -> None:
        self._answering.thinking = thinking

    def end_reasoning(self, node_id: str | None = None) -> bool:
        """End the reasoning of an answer, which then begins; False if it does not reason.

        Args:
            node_id: the answer, in any branch; None takes the one at the end of the open path.

        Raises:
            InvalidRequest: the engine is a server, which is not told.
        """
        current = self._loaded.current
        return self._answering.end_reasoning(current, node_id or current.head)

    def stop(self, node_id: str | None = None) -> None:
        """Stop an answer at the next step boundary; its text is kept.

        Args:
            node_id: the answer, in any branch; None takes the one at the end of the open path.
        """
        current = self._loaded.current
        self._answering.stop(current, node_id or current.head)
