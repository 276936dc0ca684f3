"""`ChatSources`: the passages that a chat's answer is to cite, by the field `retrieval`.

The passages stand before the last question, numbered and marked as quoted data. The grammar of the answer
allows only numbers that exist; a citation that its passage does not support is replaced in the text, also
while it is streamed (`engine.retrieval.answering.verification`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request

from app.server.calls.chat_form import ChatForm, chat_form
from app.server.calls.chat_images import ChatImages
from app.server.calls.model import LoadedModel, off_loop
from app.server.calls.prompts import chat_prompt
from app.server.calls.retrieval import retrieval_service
from app.server.calls.searching import searching, store_search
from app.server.process.context import ServerContext
from app.server.retrieval.service import RetrievalService
from app.server.retrieval.store_search import Found, mentioned
from app.server.wire.errors import bad_request
from app.server.wire.schemas import (
    ChatCompletionRequest,
    ImagePart,
    Message,
    TextPart,
)
from engine.api.errors import ContextLengthExceeded
from engine.api.grammar import Grammar
from engine.api.request import limit_from
from engine.retrieval.answering.answerer import (
    DEFAULT_K,
    DEFAULT_MAX_TOKENS,
    MAX_PASSAGE_TOKENS,
)
from engine.retrieval.answering.citation_grammar import citation_grammar
from engine.retrieval.answering.cited_text import CitedText
from engine.retrieval.answering.evidence import MIN_EVIDENCE, Declined
from engine.retrieval.answering.fitting import fit_sources, in_cached_order
from engine.retrieval.answering.follow_up import standalone_query
from engine.retrieval.answering.hops import Hops, Round, chain_parts
from engine.retrieval.answering.names import names_of
from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.prompt import context_block, instruction_for
from engine.retrieval.answering.retrieving import Retrieved, retrieve
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.api.errors import UnknownCollection, UnknownDocument
from engine.retrieval.api.passage import Passage


@dataclass(frozen=True, slots=True)
class ChatPassage:
    """What the model reads under a number, and the passage that was found."""

    source: NumberedPassage
    found: Found


class ChatSources:
    """The numbered passages of one call; none if nothing found is near enough to the question."""

    def __init__(
        self,
        query: str,
        numbered: Sequence[ChatPassage],
        service: RetrievalService,
        hops: Hops | None = None,
        *,
        declined: Declined | None = None,
        small: bool = False,
    ) -> None:
        """Nothing is computed yet.

        Args:
            query: what was searched for.
            numbered: the passages in the order of their numbers, which begin at 1.
            service: embeds claims and passages.
            hops: the searches that found them; None if nothing was near enough.
            declined: why nothing was; None if something was.
            small: whether a small model answers, which must stay with the names of the question.
        """
        self._query = query
        self.numbered = tuple(numbered)
        self._declined = declined
        self._rounds = hops.rounds if hops is not None else [Round(query, "", ())]
        self._judge = SupportJudge(
            self.sources,
            service.embed,
            chain_parts(hops.chain, self.sources) if hops is not None else (),
            about=names_of(query).certain if small else frozenset(),
        )

    @property
    def sources(self) -> list[NumberedPassage]:
        """What the model reads, in the order of the numbers."""
        return [one.source for one in self.numbered]

    @property
    def grammar(self) -> Grammar:
        """Answers that cite existing numbers only."""
        return citation_grammar(len(self.numbered))

    def cited_text(self, model: LoadedModel) -> CitedText:
        """The text of one choice; those of a call are for one thread at a time."""
        return CitedText(self._judge, self._query, small_model=model.info.is_small)

    def fields(self) -> dict[str, Any]:
        """The member `retrieval` of the response: what was searched for, and what the model reads."""
        passages = [
            {**place(one), "score": one.found.score, "text": one.source.text}
            for one in self.numbered
        ]
        rounds = [{"query": one.query, "bridge": one.bridge or None} for one in self._rounds]
        fields: dict[str, Any] = {
            "query": self._query,
            "rounds": rounds,
            "passages": passages,
        }
        one = self._declined
        if one is not None:
            fields["declined"] = {
                "rule": one.rule,
                "evidence": one.evidence,
                "least": one.least,
                "unknown_names": list(one.unknown),
            }
        return {"retrieval": fields}


async def find_sources(
    request: Request,
    context: ServerContext,
    body: ChatCompletionRequest,
    messages: Sequence[Message],
    model: LoadedModel,
    images: ChatImages | None,
) -> ChatSources | None:
    """Search for the passages that a chat asks for, as many as its context has room for.

    Args:
        request: the HTTP request.
        context: the server.
        body: its body; what the user wrote is searched for, not the text of images.
        messages: the conversation as the model reads it.
        model: the model.
        images: the images in the messages.

    Returns:
        None for a chat without the field `retrieval`.

    Raises:
        ApiError: 400 for a chat that does not end with a question; else as `search`.
        ContextLengthExceeded: there is no room for a passage.
        RetrievalError: as `search`.
    """
    wanted = body.retrieval
    if wanted is None:
        return None
    service = retrieval_service(context)
    question = body.messages[-1]
    if question.role != "user" or not question.text.strip():
        raise bad_request(
            "With `retrieval` the last message must be a text of the user.", param="messages"
        )
    query = wanted.query
    if query is None:
        asked = question.text.strip()
        if wanted.rewrite_query is not False:
            history = [{"role": one.role, "content": one.text} for one in body.messages[:-1]]
            asked = standalone_query(asked, history)
        query = await asyncio.to_thread(service.shortened, asked)
    found: dict[int, Found] = {}
    store_ids = wanted.vector_store_ids
    find = store_search(context, store_ids, wanted, default_results=DEFAULT_K)

    def searched(text: str) -> list[Passage]:
        results = find([text])
        found.update({one.passage.chunk_id: one for one in results})
        return [one.named_passage for one in results]

    def retrieved() -> Retrieved:
        return retrieve(
            query,
            searched(query),
            searched,
            partial(mentioned, service, store_ids, where=wanted.filters),
            service.embed,
            # Words to search for are no question.
            asked="" if wanted.query is not None else question.text,
            min_evidence=MIN_EVIDENCE if wanted.min_evidence is None else wanted.min_evidence,
        )

    result = await searching(request, context, retrieved)
    hops = result.hops
    if hops is None:
        return ChatSources(query, (), service, declined=result.declined)
    best = hops.best(wanted.max_num_results or DEFAULT_K)
    chosen = [found[one.chunk_id] for one in best]
    frame = await _frame(context, messages, model, images, chat_form(body))
    previous = wanted.previous_chunk_ids or ()
    fitting = await _fitting(service, body, model, chosen, previous, frame=frame)
    if not fitting:
        raise ContextLengthExceeded(
            f"its {frame} tokens leave no room for a passage",
            model.info.context_length,
            param="messages",
        )
    return ChatSources(query, fitting, service, hops, small=model.info.is_small)


def with_sources(
    messages: Sequence[Message], sources: Sequence[NumberedPassage], model: LoadedModel
) -> list[Message]:
    """A conversation with the instruction, and the passages before the last question."""
    small = model.info.is_small
    text = instruction_for(small=small)
    *earlier, question = messages
    asked = _with_text(
        question, f"{context_block(sources, question.text, small=small)}{question.text.strip()}"
    )
    first = earlier[0] if earlier else None
    if first is not None and first.role in ("system", "developer"):
        instructed = _with_text(first, f"{first.text}\n\n{text}")
        return [instructed, *earlier[1:], asked]
    instruction = Message(role="system", content=[TextPart(type="text", text=text)])
    return [instruction, *earlier, asked]


def place(numbered: ChatPassage) -> dict[str, Any]:
    """Where what the model reads under a number is from."""
    source, found = numbered.source, numbered.found
    passage = found.passage
    return {
        "n": source.n,
        "file_id": found.file.id,
        "filename": found.file.filename,
        "vector_store_id": found.store_id,
        "chunk_id": passage.chunk_id,
        "start": source.start,
        "end": source.end,
        "spans_of": passage.spans_of,
        "page": passage.page,
        "line": passage.line,
        "heading_path": list(passage.heading_path),
    }


async def _frame(
    context: ServerContext,
    messages: Sequence[Message],
    model: LoadedModel,
    images: ChatImages | None,
    form: ChatForm,
) -> int:
    """The length of the prompt without passages, in tokens."""
    asked = with_sources(messages, (), model)
    prompt = (await chat_prompt(model, asked, form)).ids
    if images is not None:
        prompt, _ = await images.placed(context, prompt)
    return len(prompt)


async def _fitting(
    service: RetrievalService,
    body: ChatCompletionRequest,
    model: LoadedModel,
    found: Sequence[Found],
    previous: Sequence[int],
    *,
    frame: int,
) -> list[ChatPassage]:
    """The best passages, or the sections around them, as many as there is room for beside the frame."""
    limit = DEFAULT_MAX_TOKENS if body.token_limit is None else body.token_limit
    quarter = model.info.context_length // 4
    answer = min(limit_from(limit) or quarter, quarter)
    by_chunk = {one.passage.chunk_id: one for one in found}
    passages = in_cached_order(
        [one.named_passage for one in found],
        previous,
    )

    def section(passage: Passage) -> str:
        one = by_chunk[passage.chunk_id]
        try:
            return service.open().library.open(one.store_id).section(one.passage)
        except (UnknownCollection, UnknownDocument):
            return passage.text  # it has just been deleted

    def choose() -> list[ChatPassage]:
        tokenizer = model.tokenizer
        room = model.info.context_length - answer - frame
        sources = fit_sources(
            passages,
            lambda text: len(tokenizer.encode(text)),
            budget=min(room, MAX_PASSAGE_TOKENS),
            section=None if model.info.is_small else section,
        )
        return [ChatPassage(one, by_chunk[one.passage.chunk_id]) for one in sources]

    size = sum(len(one.text) for one in passages)
    return await off_loop(size, choose)


def _with_text(message: Message, text: str) -> Message:
    """The message with another text; its images come behind it."""
    images = [part for part in message.content if isinstance(part, ImagePart)]
    return message.model_copy(update={"content": [TextPart(type="text", text=text), *images]})
