"""`NextTokens`: the most likely tokens after a prompt, computed by a request of one token."""

from concurrent.futures import Future

from engine.api.errors import EngineUnavailable
from engine.api.request import FinishReason, Request, SamplingParams, TopLogprob
from engine.clients.engine_client import EngineClient
from engine.conversations.prompt_builder import Prompt

COUNT = 10
"""Number of alternatives."""


class NextTokens:
    """A running request. `poll` it until it has a result: otherwise its output stays in its mailbox.

    Args:
        client: the engine.
        submitted: the id of the request, once it is submitted.
    """

    def __init__(self, client: EngineClient, submitted: "Future[str]") -> None:
        self._client = client
        self._submitted = submitted
        self._found: tuple[TopLogprob, ...] = ()

    @staticmethod
    def request(prompt: Prompt, *, continued: int) -> Request:
        """The request to submit: a prompt, of which `continued` tokens are the beginning of an answer."""
        sampling = SamplingParams(temperature=0.0, max_tokens=1, logprobs=COUNT)
        return Request(prompt.token_ids, sampling, continued_tokens=continued, images=prompt.images)

    def poll(self) -> tuple[TopLogprob, ...] | None:
        """The alternatives, most likely first, or None; not to be called after a result. Never waits.

        Raises:
            PravahaError: the request was refused, or failed.
        """
        if not self._submitted.done():
            return None
        request_id = self._submitted.result()
        batch = self._client.drain(request_id)
        if batch is None:
            return None
        if batch.top_logprobs:
            self._found = batch.top_logprobs[0]
        if batch.finish_reason is None:
            return None
        if batch.finish_reason is FinishReason.ERROR or not self._found:
            raise EngineUnavailable(batch.error or "The engine stopped before the token.")
        return self._found
