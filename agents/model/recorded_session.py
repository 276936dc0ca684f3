"""Sessions that record a model's answers, and that answer from such a record without computing anything.

An answer is found by its prompt, so the order of requests that were submitted together does not matter.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from agents.api.errors import ModelFailure
from agents.model.session import Generation, ModelSession
from engine.api.request import FinishReason, Request
from engine.clients.engine_client import EngineClient


class RecordedSession(ModelSession):
    """A session that keeps what the engine answered while `recording` is set.

    Attributes:
        answers: JSON members of every answer, in the order in which they came.
        recording: whether answers are kept.
    """

    def __init__(self, client: EngineClient, *, background: bool = False) -> None:
        super().__init__(client, background=background)
        self.answers: list[dict[str, Any]] = []
        self.recording = False

    async def missing_tokens(self, prompt_ids: Sequence[int]) -> int:
        """See `ModelSession.missing_tokens`."""
        tokens = await super().missing_tokens(prompt_ids)
        if self.recording:
            self.answers.append({"prompt": digest(prompt_ids), "missing_tokens": tokens})
        return tokens

    async def _generate(self, request: Request) -> Generation:
        generation = await super()._generate(request)
        if self.recording:
            fields = asdict(generation)
            self.answers.append({"prompt": digest(request.prompt_ids), "generation": fields})
        return generation


class ReplayedSession(ModelSession):
    """A session that answers from a record. The client only tokenizes and describes its model."""

    def __init__(self, client: EngineClient, answers: Iterable[dict[str, Any]]) -> None:
        """Sort the answers by their prompts.

        Args:
            client: an engine with the model of the record.
            answers: as `RecordedSession.answers`.
        """
        super().__init__(client)
        self._generations: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        self._missing: dict[str, deque[int]] = defaultdict(deque)
        for one in answers:
            if "generation" in one:
                self._generations[one["prompt"]].append(one["generation"])
            else:
                self._missing[one["prompt"]].append(one["missing_tokens"])

    async def missing_tokens(self, prompt_ids: Sequence[int]) -> int:
        """See `ModelSession.missing_tokens`."""
        known = self._missing[digest(prompt_ids)]
        if not known:
            raise ModelFailure(_UNKNOWN)
        return known.popleft()

    async def _generate(self, request: Request) -> Generation:
        known = self._generations[digest(request.prompt_ids)]
        if not known:
            raise ModelFailure(_UNKNOWN)
        fields = known.popleft()
        return Generation(
            **{
                **fields,
                "token_ids": tuple(fields["token_ids"]),
                "finish_reason": FinishReason(fields["finish_reason"]),
                "token_id_logprobs": tuple(tuple(one) for one in fields["token_id_logprobs"]),
            }
        )


_UNKNOWN = (
    "The model was asked something that is not in the recording: files, agent or program differ."
)


def digest(prompt_ids: Sequence[int]) -> str:
    """Identifies a prompt."""
    return hashlib.blake2b(repr(tuple(prompt_ids)).encode(), digest_size=16).hexdigest()
