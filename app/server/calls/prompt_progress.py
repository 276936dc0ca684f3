"""What a stream of a chat sends while its prompt is read: how much of it is read.

It is sent after some time of silence. With `return_progress` (llama.cpp's field) it is a chunk of its own,
with the member `prompt_progress`; else a comment of the stream, which clients skip.
"""

import time
from typing import Any

from app.server.calls.chat_turn import ChatTurn
from app.server.calls.loop_turn import LoopTurn
from app.server.wire.sse import COMMENT, event
from engine.api.request_status import RequestState


class PromptProgress:
    """The progress of one turn. Cost: one look at the request table for each call."""

    def __init__(self, turn: ChatTurn | LoopTurn) -> None:
        """Begin now."""
        self._turn = turn
        self._begun = time.monotonic()

    def keep_alive(self) -> bytes:
        """What is sent in the silence."""
        progress = self._progress()
        if progress is None:
            return COMMENT
        if not self._turn.body.return_progress:
            return b": %d of %d prompt tokens are read\n\n" % (
                progress["processed"],
                progress["total"],
            )
        return event(
            {
                "id": self._turn.id,
                "object": "chat.completion.chunk",
                "created": int(time.time()),
                "model": self._turn.model.info.name,
                "system_fingerprint": self._turn.model.fingerprint,
                "choices": [],
                "prompt_progress": progress,
            }
        )

    def _progress(self) -> dict[str, Any] | None:
        """Tokens of the prompt of the first choice; None while it is not being read."""
        if self._turn.generation is None:
            return None
        reading = self._turn.generation.choices.reading_ids
        table = self._turn.model.engine.request_table()
        status = next((one for one in table if one.request_id in reading), None)
        if status is None or status.state is not RequestState.PREFILL:
            return None
        return {
            "total": status.prompt_tokens,
            "cache": status.cached_tokens,
            "processed": min(status.computed_tokens, status.prompt_tokens),
            "time_ms": round((time.monotonic() - self._begun) * 1000),
        }
