"""The real engine with the toy executor and a byte vocabulary, for server tests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

from engine.api.generation_defaults import GenerationDefaults
from engine.runtime.engine import AsyncPravahaEngine
from tests.fakes.toy_engine import toy_config, toy_engine
from tests.fakes.toy_executor import ToyExecutor, toy_memory, toy_spec
from tests.server.toy_tokenizer import VOCAB_SIZE, byte_tokenizer

CONTEXT = 512
NO_DEFAULTS = GenerationDefaults()


class PacedExecutor(ToyExecutor):
    """A toy executor whose steps take time, so that clients can disconnect during an answer."""

    def __init__(self, *args, step_s: float = 0.0, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.step_s = step_s

    def execute(self, plan):
        if self.step_s:
            time.sleep(self.step_s)  # stands for arithmetic without the GIL
        return super().execute(plan)


def new_byte_engine(
    *,
    blocks: int = 512,
    block_size: int = 16,
    context: int = CONTEXT,
    parameters: int = 250,
    step_s: float = 0.0,
    force=None,
    gate=None,
    watch=None,
    add_bos: bool = False,
    template: str | None = None,
    defaults: GenerationDefaults = NO_DEFAULTS,
    **settings,
) -> AsyncPravahaEngine:
    """An engine that was not started; its answers depend on prompt and sampling alone.

    With `gate`, a semaphore, every step waits for a permit. `watch` is called with every plan.
    """
    config = toy_config(
        blocks=blocks,
        block_size=block_size,
        **{"max_num_seqs": 32, "max_num_batched_tokens": 512} | settings,
    )
    executor = PacedExecutor(blocks, block_size, vocab_size=VOCAB_SIZE, step_s=step_s, force=force)
    executor.gate = gate
    if watch is not None:
        executor.watch = watch
    model = SimpleNamespace(
        name="toy",
        spec=replace(toy_spec(context), vocab_size=VOCAB_SIZE),
        paths=(),
        tokenizer=byte_tokenizer(add_bos=add_bos, template=template),
        weight_format="F32",
        parameters=parameters,
        file_bytes=1000,
        images=None,
        uses_graphs=False,
        plan_memory=toy_memory,
        generation_defaults=defaults,
    )
    engine, _ = toy_engine(config, executor=executor, model_opener=lambda config: model)
    return engine


@contextmanager
def byte_engine(**options) -> Iterator[AsyncPravahaEngine]:
    """A started `new_byte_engine`, shut down at the end."""
    engine = new_byte_engine(**options)
    engine.start()
    engine.wait_ready(30)
    try:
        yield engine
    finally:
        engine.shutdown()


def wait_until(condition, *, seconds: float = 20.0) -> None:
    """Poll until a condition holds; a generous bound turns a hang into a failure."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.005)


def is_quiet(engine: AsyncPravahaEngine) -> bool:
    """Whether no request runs or waits and no block is active."""
    snapshot = engine.snapshot()
    return (snapshot.running, snapshot.waiting, snapshot.blocks.active) == (0, 0, 0)
