"""`NextTokens`: the most likely tokens after a prompt, computed by a request of one token."""

from engine.api.errors import EngineUnavailable
from engine.api.request import FinishReason, Request, SamplingParams, TopLogprob
from engine.clients.engine_client import EngineClient

COUNT = 10
"""Number of alternatives."""


class NextTokens:
    """A running request. `poll` it until it has a result: otherwise its output stays in its mailbox.

    Args:
        prompt_ids: the tokens before.
        continued: how many of them are the beginning of an answer.

    Raises:
        PravahaError: as `EngineClient.submit`.
    """

    def __init__(
        self, client: EngineClient, prompt_ids: tuple[int, ...], *, continued: int
    ) -> None:
        self._client = client
        self._found: tuple[TopLogprob, ...] = ()
        sampling = SamplingParams(temperature=0.0, max_tokens=1, logprobs=COUNT)
        request = Request(prompt_ids, sampling, continued_tokens=continued)
        self._request_id = client.submit(request)

    def poll(self) -> tuple[TopLogprob, ...] | None:
        """The alternatives, most likely first, or None; not to be called after a result. Never waits.

        Raises:
            EngineUnavailable: the request failed.
        """
        batch = self._client.drain(self._request_id)
        if batch is None:
            return None
        if batch.top_logprobs:
            self._found = batch.top_logprobs[0]
        if batch.finish_reason is None:
            return None
        if batch.finish_reason is FinishReason.ERROR or not self._found:
            raise EngineUnavailable(batch.error or "The engine stopped before the token.")
        return self._found
