"""Recurrent mixers: any chunks, batches and copies of states give the tokens of transformers in fp32."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from engine.api.errors import ExecutorError
from engine.executors.base import StateKeeper
from tests.parity.described_model import DescribedModel
from tests.parity.levels import each_level, require
from tests.parity.loading import load_stepper, read_headers
from tests.parity.recurrent_gguf import write_recurrent_gguf
from tests.parity.reference import answer_logits, logits
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_models import CONTEXT, VOCAB, TinyModel, save_tiny_model
from tests.parity.tiny_recurrent import TINY_RECURRENT

PROMPT_LENGTHS = [1, 2, 3, 15, 16, 17, 33, 64, 100]
NEW_TOKENS = 40
LOGPROBS = {"num_logprobs": 0}
IN_GGUF = [tiny for tiny in TINY_RECURRENT if not tiny.name.endswith("biased")]


@pytest.fixture(scope="module", params=TINY_RECURRENT, ids=lambda tiny: tiny.name)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PreTrainedModel, Stepper]:
    folder = tmp_path_factory.mktemp("tiny")
    model = save_tiny_model(request.param, folder, torch.float32)
    stepper = load_stepper(folder, block_size=16, rows=12, max_tokens=96, max_model_len=CONTEXT)
    return model, stepper


def _prompts(seed: int, lengths: list[int]) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(3, VOCAB, length).tolist() for length in lengths]


def test_greedy_answers_are_the_same_tokens(pair: tuple[PreTrainedModel, Stepper]) -> None:
    model, stepper = pair
    runs = [Run(prompt, NEW_TOKENS) for prompt in _prompts(1, PROMPT_LENGTHS)]
    stepper.run(runs)
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()


def test_logprobs_are_close_in_uneven_chunks(pair: tuple[PreTrainedModel, Stepper]) -> None:
    model, stepper = pair
    (ids,) = _prompts(2, [140])
    run = Run(ids, 1, score=0, chunks=(1, 17, 3, 40))
    stepper.run([run])
    reference = torch.log_softmax(torch.from_numpy(logits(model, ids)), -1).numpy()
    expected = reference[np.arange(139), ids[1:]]
    assert np.abs(np.array(run.prompt_logprobs) - expected).max() < 3e-4


def test_chunks_and_neighbours_change_no_bit(pair: tuple[PreTrainedModel, Stepper]) -> None:
    _, stepper = pair
    prompt, *others = _prompts(3, [70, 5, 31])
    alone = Run(prompt, 24, sampling=LOGPROBS)
    stepper.run([alone])
    for chunks in [(1,), (2, 3), (16,), (7, 64)]:
        cut = Run(prompt, 24, chunks=chunks, sampling=LOGPROBS)
        # The neighbours arrive before, with and after it.
        before, after = Run(others[0], 60), Run(others[1], 30, arrival=5)
        stepper.run([before, cut, after])
        assert (cut.tokens, cut.logprobs) == (alone.tokens, alone.logprobs)


def test_a_state_is_copied_and_stored_whole(pair: tuple[PreTrainedModel, Stepper]) -> None:
    _, stepper = pair
    executor = stepper.executor
    assert isinstance(executor, StateKeeper)
    stepper.run([Run(_prompts(4, [20])[0], 1)])
    (used,) = stepper.state_slots[:1]
    targets = np.array([1, 2], np.int32)
    executor.copy_states(np.array([used, 1], np.int32), targets)
    data = np.zeros((3, executor.state_bytes), np.uint8)
    executor.read_states(np.array([used, 1, 2], np.int32), data)
    assert data.any()
    assert (data == data[0]).all()
    executor.write_states(targets[:1], np.ascontiguousarray(data[:1] + 1))
    executor.read_states(targets, data[1:])
    assert (data[1] == data[0] + 1).all()
    assert (data[2] == data[0]).all()
    with pytest.raises(ExecutorError, match="state slot 12"):
        executor.copy_states(np.array([12], np.int32), targets[:1])
    with pytest.raises(ExecutorError, match="bytes"):
        executor.read_states(targets, data)


def test_a_copied_state_continues_like_the_original(pair: tuple[PreTrainedModel, Stepper]) -> None:
    _, stepper = pair
    prompt, tail = _prompts(5, [37, 21])
    whole = Run([*prompt, *tail], 20, sampling=LOGPROBS)
    stepper.run([whole])
    first = Run(prompt, 1)
    stepper.run([first])
    forked = Run([*prompt, *tail], 20, sampling=LOGPROBS)
    stepper.fork(first, forked)
    assert (forked.tokens, forked.logprobs) == (whole.tokens, whole.logprobs)


@each_level
@pytest.mark.parametrize("tiny", TINY_RECURRENT, ids=lambda tiny: tiny.name)
def test_levels_agree(tiny: TinyModel, level: str, tmp_path: Path) -> None:
    require(level)
    model = save_tiny_model(tiny, tmp_path, torch.float32)
    stepper = load_stepper(tmp_path, dispatch=level, block_size=16, rows=4)
    runs = [Run(prompt, 16) for prompt in _prompts(6, [1, 40])]
    stepper.run(runs)
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()


@pytest.mark.parametrize("tiny", IN_GGUF, ids=lambda tiny: tiny.name)
def test_gguf_files_describe_the_same_model(tiny: TinyModel, tmp_path: Path) -> None:
    model = save_tiny_model(tiny, tmp_path, torch.float32)
    path = write_recurrent_gguf(model, tmp_path / "model.gguf")
    spec, paths, _ = read_headers(path)
    (ids,) = _prompts(7, [60])
    expected = logits(model, ids)
    described = DescribedModel(spec, paths, max_model_len=CONTEXT).logits(ids).numpy()
    assert np.abs(described - expected).max() < 2e-4 * np.abs(expected).max()
    runs = [Run(prompt, 16) for prompt in _prompts(8, [1, 50])]
    load_stepper(path, block_size=16, rows=4).run(runs)
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()
