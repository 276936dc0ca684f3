"""`AnswerTurn`: a turn in which the model answers: its text, its reasoning, why it ended, its tokens."""

from collections.abc import Awaitable, Callable

from acp.helpers import text_block, update_agent_message_text
from acp.schema import AgentMessageChunk, AgentThoughtChunk, StopReason, Usage

from app.acp.updates import Updates
from engine.api.errors import EngineUnavailable
from engine.api.request import FinishReason
from engine.conversations.answer import CONTENT_FILTER, REPETITION
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind, NodeStatus


class AnswerTurn:
    """The answer to one message, with all rounds of calls. Begin it before the message is sent."""

    def __init__(self, conversations: TreeSession, updates: Updates) -> None:
        """An answer in the open conversation, which is told to `updates`."""
        self._conversations = conversations
        self._updates = updates
        self._before = {node.id for node in conversations.path()}
        self._reasoned: dict[str, int] = {}  # characters of reasoning that were sent, by answer

    async def follow(
        self,
        look: Callable[[], None],
        woken: Callable[[], Awaitable[None]],
        cancelled: Callable[[], bool],
    ) -> StopReason:
        """Pass on the answer until nothing runs any more; why it ended.

        Args:
            look: called after new text was passed on.
            woken: waits until something may have changed.
            cancelled: whether the client has asked to stop.

        Raises:
            EngineUnavailable: the answer failed.
        """
        running = self._conversations.answers
        while running.running:
            self._pump()
            look()
            if running.running:
                await woken()
        self._pump()
        last = self._conversations.path()[-1]
        if cancelled():
            return "cancelled"
        if last.status is NodeStatus.ERROR:
            raise EngineUnavailable(last.error or "The answer failed.")
        if last.finish == REPETITION:
            self._updates.tell(update_agent_message_text("\n\n(stopped: it repeated itself)"))
        if last.finish == CONTENT_FILTER:
            return "refusal"
        return "max_tokens" if last.finish == FinishReason.LENGTH.value else "end_turn"

    def usage(self) -> Usage | None:
        """The tokens of all rounds; None if none was generated."""
        answers = [
            node
            for node in self._conversations.path()
            if node.id not in self._before and node.n_gen is not None and node.n_prompt is not None
        ]
        if not answers:
            return None
        given = sum(node.n_prompt or 0 for node in answers)
        made = sum(node.n_gen or 0 for node in answers)
        return Usage(
            input_tokens=given,
            output_tokens=made,
            total_tokens=given + made,
            cached_read_tokens=sum(node.n_cached or 0 for node in answers),
            thought_tokens=sum(node.n_reasoning or 0 for node in answers),
        )

    def _pump(self) -> None:
        for delta in self._conversations.pump():
            if not self._conversations.on_path(delta.node_id):
                continue
            view = self._conversations.view(delta.node_id)
            if view.kind is not NodeKind.ASSISTANT:
                continue
            reasoning, sent = view.reasoning or "", self._reasoned.get(view.id, 0)
            if len(reasoning) > sent:
                self._reasoned[view.id] = len(reasoning)
                thought = text_block(reasoning[sent:])
                self._updates.tell(
                    AgentThoughtChunk(
                        session_update="agent_thought_chunk", content=thought, message_id=view.id
                    )
                )
            if delta.text:
                said = text_block(delta.text)
                self._updates.tell(
                    AgentMessageChunk(
                        session_update="agent_message_chunk", content=said, message_id=view.id
                    )
                )
