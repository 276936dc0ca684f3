"""`PassageResidency`: which passages of the last answer are in the prefix cache."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from app.runtime.stored_passages import StoredPassage
from app.tui.view.sources import Prefix
from engine.api.errors import PravahaError
from engine.clients.engine_client import EngineClient
from engine.conversations.session import TreeSession


class PassageResidency:
    """Used by the screen's thread.

    The positions of passages in the prompt are computed once for each message; then one look-up of the
    prompt's residency tells about all of them. Costs O(tokens / block).
    """

    def __init__(self, session: TreeSession, client: EngineClient) -> None:
        self._session = session
        self._client = client
        self._known_for: tuple[str, str] = ("", "")
        self._ids: tuple[int, ...] = ()
        self._ends: dict[int, int] = {}

    def prefixes(
        self, message: str, context: str, passages: Sequence[StoredPassage]
    ) -> Mapping[int, Prefix]:
        """Whether each passage, by its number, is in the pool; empty while that is not known.

        Args:
            message: the id of the message that the passages belong to.
            context: the text of the passages in the prompt.
            passages: in the order of the prompt.
        """
        try:
            self._locate(message, context, passages)
            residency = self._client.residency(self._ids) if self._ends else None
        except PravahaError:  # no model, or another one whose template rejects the messages
            return {}
        if residency is None:
            return {}
        found: dict[int, Prefix] = {}
        begin = 0
        for number, end in self._ends.items():
            cached = residency.pool_tokens
            found[number] = (
                "cached" if end <= cached else "partly" if begin < cached else "not cached"
            )
            begin = end
        return found

    def _locate(self, message: str, context: str, passages: Sequence[StoredPassage]) -> None:
        """Find the tokens behind each passage."""
        wanted = (message, self._client.tokenizer_fingerprint())
        if self._known_for == wanted:
            return
        ids = self._session.branches.prompt_ids(message)
        texts = self._client.token_texts(ids)
        at = "".join(texts).rfind(context.rstrip())
        self._known_for, self._ids, self._ends = wanted, ids, {}
        if at < 0:  # the template changes what messages contain
            return
        lengths = list(accumulate(map(len, texts)))
        token = 0
        for one in passages:
            while token < len(lengths) and lengths[token] < at + one.prompt_end:
                token += 1
            self._ends[one.n] = token + 1
