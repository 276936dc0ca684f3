"""`PassageResidency`: which passages of the last answer are in the prefix cache."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from app.runtime.passage_blocks import passage_blocks
from app.runtime.stored_passages import StoredPassage
from app.tui.view.sources import Prefix
from engine.api.errors import PravahaError
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession


class PassageResidency:
    """Used by the screen's thread.

    The positions of passages in the prompt are computed once for each answer; then one look-up of the
    prompt's residency tells about all of them. Costs O(tokens / block).
    """

    def __init__(self, session: TreeSession) -> None:
        self._session = session
        self._client: EngineClient | None = None  # of the answer
        self._known_for: tuple[str, str] = ("", "")
        self._ids: tuple[int, ...] = ()
        self._spans: dict[int, tuple[int, int]] = {}

    def prefixes(
        self, answer: str, context: str, passages: Sequence[StoredPassage]
    ) -> Mapping[int, Prefix]:
        """Whether each passage, by its number, is in the pool; empty while that is not known.

        Args:
            answer: the id of the answer that the passages were found for.
            context: the text before the answer's message, with all of its passages.
            passages: those of the answer; one that an earlier message has is where that has it.
        """
        try:
            client = self._locate(answer, context, passages)
            residency = client.residency(self._ids) if self._spans else None
        except PravahaError:  # no model, or another one whose template rejects the messages
            return {}
        if residency is None:
            return {}
        cached = residency.pool_tokens
        return {
            number: "cached" if end <= cached else "partly" if start < cached else "not cached"
            for number, (start, end) in self._spans.items()
        }

    def _locate(self, answer: str, context: str, passages: Sequence[StoredPassage]) -> EngineClient:
        """Find the tokens of each passage, half-open; the engine of the answer, whose tokens they are."""
        client = self._client
        if client is not None and self._known_for == (answer, client.tokenizer_fingerprint()):
            return client
        client, ids = self._session.tokens.prompt_of(answer)
        texts = client.token_texts(ids)
        prompt, ends = "".join(texts), list(accumulate(map(len, texts)))
        self._client, self._known_for = client, (answer, client.tokenizer_fingerprint())
        self._ids, self._spans = ids, {}
        for one, block in passage_blocks(context, passages):
            at = prompt.find(block.body)
            if block.body and at >= 0:  # the template may change what messages contain
                last = at + len(block.body)
                self._spans[one.n] = (bisect_right(ends, at), bisect_left(ends, last) + 1)
        return client
