"""What the tools that generate text share: sampling arguments, and reading a stream of chunks."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from app.server.mcp.progress import Progress
from app.server.mcp.tool import Arguments, Output

STREAMED = {
    "stream": True,
    "stream_options": {"include_usage": True, "continuous_usage_stats": True},
}


MAX_SEED = 2**53 - 1
"""The largest integer that every JSON reader keeps; hosts refuse a tool whose schema has a larger one."""


class SamplingArguments(Arguments):
    """How to generate. What is left out is the model's own default."""

    temperature: Annotated[
        float | None, Field(ge=0, le=100, description="0 always takes the likeliest token.")
    ] = None
    top_p: Annotated[
        float | None, Field(gt=0, le=1, description="Probability mass to sample from.")
    ] = None
    seed: Annotated[
        int | None,
        Field(ge=0, le=MAX_SEED, description="Equal seeds give equal answers to equal requests."),
    ] = None
    stop: Annotated[
        list[str] | None, Field(max_length=16, description="Texts before which the answer ends.")
    ] = None
    request_id: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9_.:-]{1,128}$",
            description="Your own name for this call, by which `fork` finds it while it runs.",
        ),
    ] = None

    def sampling_fields(self) -> dict[str, Any]:
        """Those that were given, by the API's names."""
        names = SamplingArguments.model_fields
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class GeneratedText(Output):
    """One text."""

    answer: Annotated[str, Field(description="The generated text.")]
    finish_reason: Annotated[
        str,
        Field(
            description="stop; length if max_tokens or the context, content_filter if a check ended it."
        ),
    ]
    model: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def text(self) -> str:
        """The text alone; one that is empty or was ended says so."""
        if self.finish_reason == "length":
            why = f"[Cut after {self.completion_tokens} tokens: raise max_tokens.]"
        elif self.finish_reason == "content_filter":
            why = "[Ended by the guardrails.]"
        elif not self.answer:
            return "[The answer is empty.]"
        else:
            return self.answer
        return f"{self.answer}\n\n{why}"


@dataclass(slots=True)
class Generated:
    """The texts of a stream.

    Attributes:
        texts: by choice.
        finish: the finish reason by choice.
        usage: the API's token counts.
        model: the model's name.
    """

    texts: dict[int, list[str]] = field(default_factory=dict)
    finish: dict[int, str] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""

    def text(self, choice: int = 0) -> str:
        """The text of a choice."""
        return "".join(self.texts.get(choice, ()))

    def output(self) -> GeneratedText:
        """The first choice as a result."""
        return GeneratedText(
            answer=self.text(),
            finish_reason=self.finish.get(0, "stop"),
            model=self.model,
            prompt_tokens=self.usage.get("prompt_tokens", 0),
            completion_tokens=self.usage.get("completion_tokens", 0),
        )


async def read_generated(
    chunks: AsyncGenerator[dict[str, Any], None], progress: Progress, *, max_tokens: int | None
) -> Generated:
    """Read a stream to its end, with a notification of its tokens now and then.

    Raises:
        ApiRefusal: from the API.
    """
    found = Generated()
    async with aclosing(chunks):
        async for chunk in chunks:
            found.model = chunk.get("model", found.model)
            found.usage = chunk.get("usage") or found.usage
            for choice in chunk["choices"]:
                piece = choice.get("text") or choice.get("delta", {}).get("content") or ""
                found.texts.setdefault(choice["index"], []).append(piece)
                if choice.get("finish_reason"):
                    found.finish[choice["index"]] = choice["finish_reason"]
            tokens = found.usage.get("completion_tokens", 0)
            await progress.report(tokens, max_tokens, f"{tokens} tokens generated")
    return found
