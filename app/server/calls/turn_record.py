"""`TurnRecord`: keeps the tokens of an answered turn for the next one, and counts what its prompt cost."""

from collections.abc import Sequence

from app.server.calls.chat_choice import AnsweredChoice, ChatChoice, ChoiceEnd
from app.server.calls.model import LoadedModel
from app.server.calls.prompts import arguments_of
from app.server.process.answered_turns import ConversationKey
from app.server.process.context import ServerContext
from engine.api.answer_parts import AnswerPart, CallBegun
from engine.api.chat import ChatMessage
from engine.api.request import RequestOutput, TokenBatch
from engine.grammar.call_plan import CallPlan, CallPlanner
from engine.memory.pauses import PERSON


class TurnRecord:
    """Collects the answer of a turn with one choice while it arrives."""

    def __init__(
        self,
        context: ServerContext,
        model: LoadedModel,
        prompt: Sequence[int],
        conversation: ConversationKey,
        session: tuple[str, str],
        stop_token_ids: Sequence[int] = (),
        planner: CallPlanner | None = None,
    ) -> None:
        """Begin before the first token.

        Args:
            context: the server.
            model: the model.
            prompt: token ids.
            conversation: the key of its messages.
            session: the name of the session that it belongs to, and the engine's of the conversation.
            stop_token_ids: tokens that stop the answer and are not sent.
            planner: of the turn's calls, which may add to the prompt.
        """
        self._context = context
        self._model = model
        self._prompt = prompt
        self._conversation = conversation
        self._session, self._branch = session
        self._stop_token_ids = frozenset(stop_token_ids) - model.tokenizer.eos_ids
        self._planner = planner
        self._parts: list[AnswerPart] = []
        self._ids: list[int] = []

    def add(
        self,
        choice: ChatChoice,
        parts: Sequence[AnswerPart],
        output: RequestOutput | TokenBatch,
        end: ChoiceEnd | None,
    ) -> None:
        """Collect a piece; with its end the answer is kept, if its tokens say what was sent.

        Args:
            choice: the choice.
            parts: of the answer, made of the output.
            output: tokens of the choice.
            end: of the choice; None while it runs.
        """
        self._parts += parts
        self._ids += output.token_ids
        if end is None:
            return
        plan = CallPlan() if self._planner is None else self._planner.plan
        prompt = (*self._prompt, *plan.suffix)
        cost = self._context.sessions.add(self._session, prompt, self._ids, output.cached_tokens)
        self._context.counters.prompt_read(new=cost.new, reused=cost.reused, reread=cost.reread)
        called = next((part.name for part in self._parts if isinstance(part, CallBegun)), PERSON)
        self._model.engine.session_waits(self._branch, called)
        if choice.ended or "guardrails" in end.fields or not self._ids:
            return
        if plan.suffix and not plan.calls:
            return  # a note about this turn alone stands between prompt and answer
        # A stop string, or a token of the request that stops, was computed and not sent. A grammar that
        # allows no further token ends an answer without an end token.
        if output.stop_string is None and self._ids[-1] not in self._stop_token_ids:
            answer = _message(AnsweredChoice(self._parts, end))
            ids = [*prompt, *self._ids]
            self._context.answered_turns.add(self._conversation, answer, ids)


def _message(answer: AnsweredChoice) -> ChatMessage:
    """An answer as a client sends it back."""
    calls = [
        {"function": {"name": call.name, "arguments": arguments_of(call.arguments)}}
        for call in answer.calls
    ]
    return {"role": "assistant", "content": answer.text, "tool_calls": calls}
