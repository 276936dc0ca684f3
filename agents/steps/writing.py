"""Texts that a model writes as texts: without a grammar, as long as the task needs, not cut in a sentence.

The member of an output that holds a whole text (`text`, `content`, `lesson`) is written behind the same
shared prompt as everything else. JSON around it would only cost: each quote and line end an escape, and a
bound on its length.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel

from agents.api.errors import BudgetExhausted
from agents.model.session import Generation, ModelSession, usage_of
from agents.steps.react import StepRun
from agents.steps.room import text_room
from engine.api.request import FinishReason, Request, SamplingParams

TEXT_MEMBERS = ("text", "content", "lesson")
"""Members that hold a whole text, by the names that outputs have for them."""
PLAIN = "Write the text itself: no introduction, no remarks about it, no JSON."
MIN_ROOM = 32
"""Tokens below which no text is begun."""
LADDER = (0.4, 0.7, 0.9)
"""Temperatures of further drafts, if the first one fails a check. They share one prefill."""
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s|$)|\n(?=\n)")
_FENCED = re.compile(r"\A\s*```[\w+-]*[ \t]*\n(.*?)(?:\n```\s*)?\Z", re.DOTALL)
_INTRODUCTION = re.compile(
    r"\A(?:sure|certainly|of course|here(?:'s| is| are))\b[^\n]{0,120}:[ \t]*\n+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A text by the model.

    Attributes:
        text: the text, without fences and introductions around it.
        is_whole: whether the model ended it; another one ends at its last whole sentence.
    """

    text: str
    is_whole: bool


def text_member(form: type[BaseModel]) -> str | None:
    """The member of an output that holds a whole text; None if there is none."""
    return next((name for name in TEXT_MEMBERS if name in form.model_fields), None)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes texts behind prompts.

    Attributes:
        session: of the loaded model.
        run: whose budget is used.
        material: what is written from; its length decides how long a text may become.
        sampling: sampling parameters, those of the first draft.
    """

    session: ModelSession
    run: StepRun
    material: str
    sampling: SamplingParams

    async def drafts(
        self,
        prompts: Sequence[tuple[int, ...]],
        *,
        shared_tokens: int,
        temperatures: Sequence[float] = (),
    ) -> list[Draft]:
        """A text behind each prompt, in one batch.

        Args:
            prompts: the prompts.
            shared_tokens: length of their common beginning, which is computed once.
            temperatures: of each; none leaves the run's.

        Raises:
            BudgetExhausted: the budget does not allow the batch.
            ModelFailure: the engine failed.
        """
        heats = temperatures or [self.sampling.temperature] * len(prompts)
        room = await self._room(prompts, shared_tokens)
        batch = [
            Request(ids, replace(self.sampling, max_tokens=room, temperature=heat, seed=number))
            for number, (ids, heat) in enumerate(zip(prompts, heats, strict=True))
        ]
        generations = await self.session.generate_all(
            batch, self.run.meter, shared_tokens=shared_tokens
        )
        self.run.usage = self.run.usage.plus(usage_of(generations))
        return [_draft(one) for one in generations]

    async def _room(self, prompts: Sequence[tuple[int, ...]], shared_tokens: int) -> int:
        """Tokens of each text: by the material, and by what context and budget hold for all."""
        computed = await self.session.missing_tokens(prompts[0])
        computed += sum(len(ids) - shared_tokens for ids in prompts[1:])
        budget = (self.run.meter.tokens_left - computed) // len(prompts)
        context = self.session.model().context_length - max(map(len, prompts))
        material = len(self.session.client.tokenize(self.material)) if self.material else 0
        left = min(budget, context)
        if left < MIN_ROOM:
            raise BudgetExhausted(
                f"{max(0, left)} tokens of context and budget are left for a text."
            )
        return text_room(material, left)


def _draft(generation: Generation) -> Draft:
    text = plain_text(generation.text)
    if generation.finish_reason is FinishReason.STOP:
        return Draft(text, is_whole=True)
    return Draft(whole_sentences(text), is_whole=False)


def plain_text(text: str) -> str:
    """A text without the fence or the introduction that a model put around it."""
    text = _INTRODUCTION.sub("", text.strip())
    fenced = _FENCED.match(text)
    return (fenced[1] if fenced else text).strip()


def whole_sentences(text: str) -> str:
    """A text up to its last end of a sentence or paragraph; all of it if it has none."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return text[: ends[-1]].rstrip() if ends else text
