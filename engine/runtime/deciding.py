"""`decide`: answers to many questions about one text, computed by a running engine.

The server does the same on its event loop (`app.server.calls.deciding`), with the same rows.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from engine.api.decisions import DecisionQuestion, DecisionRules, Decisions
from engine.api.errors import EngineUnavailable, ExecutorError, InvalidRequest
from engine.api.request import FinishReason, Request, RequestOutput
from engine.decisions.calibration import Calibration
from engine.decisions.preparing import input_ids, prepare

if TYPE_CHECKING:
    from engine.runtime.engine import AsyncPravahaEngine


def decide(
    engine: "AsyncPravahaEngine",
    text: str,
    questions: Iterable[DecisionQuestion],
    rules: DecisionRules,
    calibration: Calibration,
) -> Decisions:
    """Answer questions; blocks until all rows are computed. Arguments as of `AsyncPravahaEngine.decide`."""
    if not text.strip():
        raise InvalidRequest("The input is empty: there is nothing to decide on.", param="input")
    asked, tokenizer, name = tuple(questions), engine.tokenizer, engine.config.name
    batch = prepare(
        tokenizer,
        asked,
        rules,
        shared=input_ids(tokenizer, text),
        block_size=max(1, engine.snapshot().blocks.block_size),
        model=name,
        calibration=calibration,
    )
    requests, outputs = batch.requests(), list[RequestOutput]()
    # The engine's rows: more would wait in its bounded queue.
    while some := list(islice(requests, engine.config.max_num_seqs)):
        outputs += _computed(engine, some)
    return batch.decisions(name, [(one.token_id_logprobs[0], one.cached_tokens) for one in outputs])


def _computed(engine: "AsyncPravahaEngine", requests: Sequence[Request]) -> list[RequestOutput]:
    """The outputs of requests; if one fails, or the caller is interrupted, the others are aborted.

    Raises:
        ExecutorError: one failed.
        EngineUnavailable: one was aborted.
        InvalidRequest, QueueFull: from the engine.
    """
    handles = engine.submit_all(requests)
    try:
        outputs = [one.wait_result() for one in handles]
    finally:
        for handle in handles:
            handle.abort()
    for output in outputs:
        if output.finish_reason is FinishReason.ERROR:
            raise ExecutorError(output.error or "The engine failed on this request.")
        if output.finish_reason is FinishReason.ABORT:
            raise EngineUnavailable(output.error or "The engine stopped before the decision.")
    return outputs
