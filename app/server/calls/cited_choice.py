"""`CitedChoice`: one choice of an answer from passages, whose citations are checked while it arrives."""

import asyncio
from collections.abc import Sequence
from typing import Any

from app.server.calls.chat_sources import ChatSources, place
from app.server.calls.model import LoadedModel
from engine.retrieval.answering.claims import claims_of
from engine.retrieval.answering.verification import Quote


class CitedChoice:
    """One choice; `feed` its pieces, then `finish` it. Sentences are checked off the event loop."""

    def __init__(self, sources: ChatSources, model: LoadedModel, *, keeps_text: bool) -> None:
        """Begin a choice.

        Args:
            sources: what it may cite.
            model: what writes it.
            keeps_text: whether the text stays as it was generated, and citations are only reported.
        """
        self._sources, self._keeps_text = sources, keeps_text
        self._cited = sources.cited_text(model)
        self._generated: list[str] = []

    @property
    def ended(self) -> bool:
        """Whether nothing more is shown: the answer repeats itself, or leaves its passages."""
        return self._cited.ended and not self._keeps_text

    async def feed(self, piece: str) -> str:
        """The text to send after this piece."""
        checked = await asyncio.to_thread(self._cited.feed, piece) if piece else ""
        self._generated.append(piece)
        return piece if self._keeps_text else checked

    async def finish(self) -> str:
        """The text to send at the end: the rest and, if nothing is supported, the closest sentences."""
        rest = await asyncio.to_thread(self._cited.finish)
        return "" if self._keeps_text else rest

    def annotations(self) -> list[dict[str, Any]]:
        """Every supported citation in the text that was sent, after `finish`."""
        keeps = self._keeps_text
        citations = self._cited.answer().citations if keeps else self._cited.citations()
        quotes = {one.n: one.quotes for one in citations}
        text = "".join(self._generated) if keeps else self._cited.text
        return [
            {
                "type": "file_citation",
                "file_citation": {
                    "start_index": marker.start,
                    "end_index": marker.end,
                    **place(self._sources.numbered[marker.n - 1]),
                    "quotes": [
                        {"text": one.text, "start": one.start, "end": one.end, "line": one.line}
                        for one in said
                    ],
                },
            }
            for claim in claims_of(text)
            for marker in claim.markers
            if (said := self._quotes_of(claim.text, quotes.get(marker.n, ())))
        ]

    def fields(self) -> dict[str, Any]:
        """The member `retrieval` of the choice: whether it is supported, and what it cited in vain."""
        answer = self._cited.answer()
        dropped = [
            {"n": one.n, "sentence": one.sentence, "exists": one.exists} for one in answer.dropped
        ]
        return {"retrieval": {"supported": answer.is_supported, "dropped_citations": dropped}}

    def _quotes_of(self, sentence: str, quotes: Sequence[Quote]) -> Sequence[Quote]:
        """The quotes that support a sentence."""
        own = [one for one in quotes if one.sentence == sentence]
        # In a text that was checked every number that is left is supported.
        return own or (() if self._keeps_text else quotes)
