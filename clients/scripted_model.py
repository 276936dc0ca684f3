"""A server with a scripted model: `python clients/scripted_model.py PORT`, from the root of the project.

It is the server of `pravaha --serve`, with its faces, templates, scheduler and parsing of calls; only the
weights are replaced. A conversation carries the model's answers itself, in a user's message, as
`agent_task.py` writes them:

    <answers>[{"name": "bash", "arguments": {"command": "ls"}}, "Done."]</answers>

The first answer after that message is the first of the list, and so on: an object is written as a call, a
text as it is. Without a list, or after its end, the answer is `OTHERWISE`. So agents whose task no small
model finishes can be tried from the first request to the last.
"""

import json
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from app.commands.serve import serve_engine
from app.server.process.config import ServerConfig
from app.server.retrieval.service import RetrievalService
from engine.runtime.engine import AsyncPravahaEngine
from tests.fakes.gated_embedder import GatedEmbedder
from tests.fakes.image_parser import AnyText, ImageParser
from tests.fakes.toy_engine import toy_config, toy_engine
from tests.fakes.toy_executor import ToyExecutor, toy_model
from tests.server.toy_tokenizer import END_OF_TEXT, IM_END, IM_START, VOCAB_SIZE, byte_tokenizer

OTHERWISE = "I have no more answers."
CONTEXT = 262_144
BLOCK_SIZE = 64
BLOCKS = 16_384
BEGIN, END = b"<answers>", b"</answers>"
TURN = IM_START.to_bytes(2, "big") + "assistant\n".encode("utf-16-be")
CLOSING = (*b'"}]0', IM_END)
"""Tokens that end what a grammar asks for, in the order in which they are preferred."""


def answers_of(prompt: bytes) -> list[str]:
    """The answers of the last list in a prompt; empty if it has none."""
    begin = prompt.rfind(BEGIN)
    end = prompt.find(END, begin)
    if begin < 0 or end < 0:
        return []
    return [written(one) for one in json.loads(prompt[begin + len(BEGIN) : end])]


def written(answer: Any) -> str:
    """One answer as the model writes it."""
    if isinstance(answer, str):
        return answer
    return f"<tool_call>\n{json.dumps(answer)}\n</tool_call>"


def next_token(tokens: "np.ndarray[Any, Any]") -> int:
    """The token that follows: of the answer that is due, or the end of the turn."""
    units = tokens.astype(
        ">u2"
    ).tobytes()  # two bytes a token, so that control tokens are searchable
    text = bytes(tokens[tokens < 256].astype(np.uint8))
    turns = units.count(TURN, _units_of_last_list(units))
    last = units.rfind(TURN)
    if last < 0:
        return IM_END
    answers = answers_of(text)
    answer = (answers[turns - 1] if 0 < turns <= len(answers) else OTHERWISE).encode()
    begun = len(units[last + len(TURN) :]) // 2
    return answer[begun] if begun < len(answer) else IM_END


def _units_of_last_list(units: bytes) -> int:
    """Where the last list of answers begins, in a prompt of two bytes a token; 0 if there is none."""
    return max(0, units.rfind(BEGIN.decode().encode("utf-16-be")))


class ScriptedModel(ToyExecutor):
    """The toy executor with the scripted answers: the token that is due gets the largest logit."""

    def _logits(self, plan: Any, row: int, length: int) -> "np.ndarray[Any, Any]":
        places = np.arange(length)
        blocks = plan.block_tables[row, places // self.block_size]
        stored = self.kv[blocks, places % self.block_size]
        logits = np.full(self.vocab_size, -100, np.float32)
        for value, token in enumerate(reversed((*CLOSING, END_OF_TEXT))):
            logits[token] = 10 * value
        logits[next_token(stored % 2**40)] = (
            100  # far above, so that any temperature gives the same
        )
        return logits


def scripted_engine() -> AsyncPravahaEngine:
    """The engine, which was not started."""
    executor = ScriptedModel(BLOCKS, BLOCK_SIZE, vocab_size=VOCAB_SIZE)
    model = toy_model(CONTEXT)
    model.name = "scripted"
    model.spec = replace(model.spec, vocab_size=VOCAB_SIZE)
    model.tokenizer = byte_tokenizer()
    config = toy_config(blocks=BLOCKS, block_size=BLOCK_SIZE, max_num_batched_tokens=16_384)
    config = replace(config, name="scripted")
    engine, _ = toy_engine(config, executor=executor, model_opener=lambda config: model)
    return engine


def main(port: str) -> int:
    engine = scripted_engine()
    engine.embedder = GatedEmbedder()
    with (
        TemporaryDirectory() as folder,
        closing(RetrievalService(Path(folder), engine.embedder)) as retrieval,
        ImageParser(AnyText()).reader() as image_reader,
    ):
        retrieval.start()
        config = ServerConfig(port=int(port))
        return serve_engine(engine, config, retrieval=retrieval, image_reader=image_reader)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
