"""`pravaha run --score FILE`: the model's perplexity on a text."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.runtime.opening import OpenClient
    from app.runtime.perplexity import TextScore


def read_text(file: str) -> str:
    """The text to score; `-` is standard input.

    Raises:
        InvalidRequest: it cannot be read, or is not UTF-8.
    """
    from engine.api.errors import InvalidRequest

    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}.") from error
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"{file} is not UTF-8 text: byte {error.start} is {raw[error.start]:#04x}."
        ) from error


def score_file(opened: "OpenClient", file: str, *, stride: int | None, as_json: bool) -> None:
    """Score a file and print the result.

    Args:
        opened: the engine.
        file: its path, or `-`.
        stride: tokens from one window to the next; None takes half of the context.
        as_json: print one object instead of lines.

    Raises:
        InvalidRequest: the file cannot be read or scored.
        EngineUnavailable: the engine has no model, failed or was shut down.
    """
    from app.runtime.opening import wait_loaded
    from app.runtime.perplexity import score_text
    from engine.api.errors import EngineUnavailable

    text = read_text(file)
    opened.start()
    model = wait_loaded(opened.client).model
    if model is None:
        raise EngineUnavailable("The engine has no model.")
    used_stride = max(1, model.context_length // 2) if stride is None else stride
    began = time.monotonic()
    score = score_text(
        opened.client,
        text,
        context=model.context_length,
        stride=used_stride,
        bos=opened.bos(),
        progress=_show_progress if sys.stderr.isatty() else lambda done, count: None,
    )
    if sys.stderr.isatty():
        print(file=sys.stderr)
    facts = _facts(score, seconds=time.monotonic() - began)
    facts = {"model": model.name, "context": model.context_length, "stride": used_stride} | facts
    if as_json:
        print(json.dumps(facts))
        return
    print(f"tokens         {score.tokens:,}  ({score.text_bytes:,} bytes)")
    print(f"mean NLL       {score.mean:.4f} nats a token")
    print(f"perplexity     {score.perplexity:.4f}")
    print(f"bits per byte  {score.bits_per_byte:.4f}")
    shape = f"{score.windows} of {model.context_length:,} tokens"
    print(f"windows        {shape}" + (f", stride {used_stride:,}" if score.windows > 1 else ""))


def _facts(score: "TextScore", *, seconds: float) -> dict[str, Any]:
    return {
        "tokens": score.tokens,
        "bytes": score.text_bytes,
        "mean_nll": score.mean,
        "perplexity": score.perplexity,
        "bits_per_byte": score.bits_per_byte,
        "windows": score.windows,
        "seconds": seconds,
    }


def _show_progress(done: int, count: int) -> None:
    print(f"\r{done:,} of {count:,} tokens", end="", file=sys.stderr, flush=True)
