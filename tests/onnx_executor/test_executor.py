"""The ONNX executor's tokens and logprobs for each kind of graph, compared with transformers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from engine.api.errors import ExecutorError, ModelError
from engine.executors.onnx import runner
from engine.executors.onnx.kv_store import KvStore
from engine.executors.onnx.runner import Padding
from engine.executors.onnx.self_check import Abilities
from engine.executors.onnx.session import DecoderSession
from engine.executors.reference_sampler import log_softmax
from tests.fakes.block_transfer import check_refusals, check_round_trip
from tests.fakes.tiny_onnx import GraphOptions, dequantized, write_genai, write_optimum
from tests.fakes.tiny_transformers import VOCAB, greedy
from tests.onnx_executor.loaded import NUM_BLOCKS, load_onnx, onnx_config, stepper, tiny_llama
from tests.parity.drafting import guesser
from tests.parity.stepper import Run, Stepper

KINDS = {
    "concat": (GraphOptions(), Padding.LEFT, True),
    "positions of the mask": (GraphOptions(positions="mask"), Padding.LEFT, True),
    "positions of the index": (GraphOptions(positions="index"), Padding.EQUAL, True),
    "fused": (GraphOptions(attention="gqa"), Padding.IN_PLACE, True),
    "last logits only": (GraphOptions(last_only=True), Padding.LEFT, False),
    "fused, last logits only": (
        GraphOptions(attention="gqa", last_only=True),
        Padding.IN_PLACE,
        False,
    ),
    "logits to keep": (GraphOptions(keeps=True), Padding.LEFT, True),
    "merged of two": (GraphOptions(merged=True), Padding.LEFT, True),
    "batch of one": (GraphOptions(batch=1), Padding.SINGLE, True),
    "one token after a past": (GraphOptions(continues=False), Padding.LEFT, True),
    "one token, last logits only": (
        GraphOptions(continues=False, last_only=True),
        Padding.LEFT,
        False,
    ),
    "32-bit integers": (GraphOptions(int32=True), Padding.LEFT, True),
}
"""Name → graph, the padding that is to be found, and whether it gives all logits."""

PROMPTS = [
    [(7 * length + step) % (VOCAB - 3) + 3 for step in range(length)]
    for length in (1, 5, 8, 17, 33, 40)
]


@pytest.fixture(scope="module")
def oracle():
    return tiny_llama()


@pytest.fixture(scope="module", params=KINDS)
def executor(request, oracle, tmp_path_factory):
    options, padding, gives_all = KINDS[request.param]
    write = write_genai if options.attention == "gqa" else write_optimum
    loaded = load_onnx(write(tmp_path_factory.mktemp("onnx"), oracle[1], options))
    assert loaded.abilities == Abilities(padding, gives_all, options.continues)
    yield loaded
    loaded.close()


def test_tokens_equal_generate_in_uneven_chunks_and_mixed_batches(executor, oracle):
    runs = [
        Run(prompt, 20, arrival=at, chunks=(3, 7) if at % 2 else None)
        for at, prompt in enumerate(PROMPTS)
    ]
    stepper(executor).run(runs)
    assert [run.tokens for run in runs] == [greedy(oracle[0], prompt, 20) for prompt in PROMPTS]


def test_a_row_does_not_depend_on_its_neighbours(executor):
    sampling = {"temperature": 0.9, "top_p": 0.95, "seed": 11, "num_logprobs": 3}
    alone = [Run(prompt, 12, sampling=sampling) for prompt in PROMPTS]
    for run in alone:
        stepper(executor).run([run])
    together = [Run(prompt, 12, sampling=sampling) for prompt in PROMPTS]
    stepper(executor).run(together)
    for one, other in zip(alone, together, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


def test_logprobs_of_prompts_equal_those_of_transformers(executor, oracle):
    runs = [Run(prompt, 2, chunks=(6, 9), score=3) for prompt in PROMPTS[1:4]]
    stepper(executor).run(runs)
    for run in runs:
        with torch.no_grad():
            logits = oracle[0](torch.tensor([run.prompt])).logits[0].numpy()
        expected = np.stack([log_softmax(row) for row in logits])
        targets = run.prompt[1:]
        own = expected[np.arange(len(targets)), targets]
        np.testing.assert_allclose(run.prompt_logprobs, own, atol=2e-4)
        ranks = [
            int((row > row[target]).sum()) + 1
            for row, target in zip(expected, targets, strict=False)
        ]
        assert run.prompt_ranks == ranks
        assert [len(tops) for tops in run.prompt_top] == [3] * len(targets)


def test_drafts_change_no_token(executor):
    sampling = {"temperature": 0.8, "seed": 3, "repetition_penalty": 1.2, "num_logprobs": 2}
    plain = [Run(prompt, 16, sampling=sampling) for prompt in PROMPTS[:4]]
    stepper(executor).run(plain)
    for right in (1.0, 0.5, 0.0):
        runs = [
            replace(
                run,
                tokens=[],
                logprobs=[],
                top=[],
                drafts=guesser(run.tokens, len(run.prompt), VOCAB, length=4, right=right, seed=at),
            )
            for at, run in enumerate(plain)
        ]
        stepper(executor).run(runs)
        assert [run.tokens for run in runs] == [run.tokens for run in plain]
        for run, before in zip(runs, plain, strict=True):
            np.testing.assert_allclose(run.logprobs, before.logprobs, atol=2e-4)
        if right == 1.0:
            assert all(run.accepted for run in runs)


def test_sequences_that_go_on_together_are_not_gathered_again(executor, monkeypatch):
    gathered = []
    whole = KvStore.gather

    def counted(store, slots, *, room):
        gathered.append(slots.shape)
        return whole(store, slots, room=room)

    monkeypatch.setattr(KvStore, "gather", counted)
    stepper(executor).run([Run(PROMPTS[3], 20)])
    assert gathered == [(1, 0)]


def test_arrays_without_room_are_gathered_again(oracle, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_ROOM", 16)
    loaded = load_onnx(write_genai(tmp_path, oracle[1]))
    runs = [Run(prompt, 40, chunks=(7,)) for prompt in PROMPTS[1:]]
    stepper(loaded).run(runs)
    loaded.close()
    assert [run.tokens for run in runs] == [greedy(oracle[0], prompt, 40) for prompt in PROMPTS[1:]]


def test_blocks_that_were_written_are_read_again(executor, oracle):
    class Overwriting:
        """Overwrites all blocks after each step, before it puts them back if it is told to."""

        def __init__(self, restores):
            self.restores = restores

        def execute(self, plan):
            result = executor.execute(plan)
            blocks = np.arange(NUM_BLOCKS, dtype=np.int32)
            data = np.zeros((NUM_BLOCKS, executor.block_bytes), np.uint8)
            executor.read_blocks(blocks, data)
            executor.write_blocks(blocks, np.full_like(data, 0x35))
            if self.restores:
                executor.write_blocks(blocks, data)
            return result

    expected = greedy(oracle[0], PROMPTS[3], 12)
    for restores in (True, False):
        run = Run(PROMPTS[3], 12)
        stepper(Overwriting(restores)).run([run])
        assert (run.tokens == expected) is restores


def test_blocks_are_read_back_as_written(executor):
    check_round_trip(executor, NUM_BLOCKS, highest_byte=100)


def test_blocks_outside_the_pool_and_other_shapes_are_refused(executor):
    check_refusals(
        executor,
        NUM_BLOCKS,
        outside=lambda block: "inside the KV pool",
        count="must be",
        width="must be",
    )


@pytest.mark.parametrize("attention", ["concat", "gqa"])
def test_half_precision_stays_close(oracle, tmp_path, attention):
    options = GraphOptions(attention=attention, dtype=np.float16)
    write = write_genai if attention == "gqa" else write_optimum
    loaded = load_onnx(write(tmp_path, oracle[1], options))
    assert loaded.info.kv_dtype == "f16"
    runs = [Run(prompt, 8, chunks=(5,), score=0) for prompt in PROMPTS[1:]]
    stepper(loaded).run(runs)
    loaded.close()
    for run in runs:
        with torch.no_grad():
            logits = oracle[0](torch.tensor([run.prompt])).logits[0].numpy()
        own = [log_softmax(row)[token] for row, token in zip(logits, run.prompt[1:], strict=False)]
        np.testing.assert_allclose(run.prompt_logprobs, own, atol=0.1)


def test_packed_4_bit_weights_compute_what_their_values_say(oracle, tmp_path):
    model, llama = tiny_llama()
    linear = [name for name in llama.weights if name.endswith("proj.weight")]
    model.load_state_dict(
        {
            name: torch.from_numpy(dequantized(weight) if name in linear else weight)
            for name, weight in llama.weights.items()
        }
    )
    options = GraphOptions(attention="gqa", bits=4)
    loaded = load_onnx(write_genai(tmp_path, oracle[1], options))
    assert loaded.info.weight_format == "INT4"
    runs = [Run(prompt, 20, arrival=at) for at, prompt in enumerate(PROMPTS)]
    stepper(loaded).run(runs)
    loaded.close()
    assert [run.tokens for run in runs] == [greedy(model, prompt, 20) for prompt in PROMPTS]


def test_a_graph_that_ignores_its_past_is_refused(oracle, tmp_path):
    folder = write_optimum(tmp_path, oracle[1], GraphOptions(positions="restarted"))
    with pytest.raises(ModelError, match="something else when a text is continued") as caught:
        load_onnx(folder)
    assert "\n" not in str(caught.value)


def test_a_graph_that_states_wrong_shapes_runs_without_reuse_of_memory(
    oracle, tmp_path, monkeypatch, caplog
):
    whole_load, whole_run = DecoderSession.load.__func__, DecoderSession.run

    def load(cls, *arguments, reuses_memory=True, **named):
        session = whole_load(cls, *arguments, reuses_memory=reuses_memory, **named)
        session.reuses_memory = reuses_memory
        return session

    def run(session, inputs, **named):
        if session.reuses_memory and inputs.past[0].shape[2]:
            raise ExecutorError("ONNX Runtime: Shape mismatch attempting to re-use buffer.")
        return whole_run(session, inputs, **named)

    monkeypatch.setattr(DecoderSession, "load", classmethod(load))
    monkeypatch.setattr(DecoderSession, "run", run)
    loaded = load_onnx(write_optimum(tmp_path, oracle[1]))
    asked = Run(PROMPTS[3], 10)
    stepper(loaded).run([asked])
    loaded.close()
    assert asked.tokens == greedy(oracle[0], PROMPTS[3], 10)
    assert "tiny takes more memory for activations" in caplog.text


def test_what_a_graph_lacks_is_said(oracle, tmp_path, caplog):
    caplog.set_level("INFO")
    write_optimum(tmp_path, oracle[1], GraphOptions(batch=1, last_only=True))
    loaded = load_onnx(tmp_path)
    assert loaded.info.dispatch == "cpu, one sequence at a time"
    loaded.close()
    assert "tiny: Its graph runs one sequence at a time" in caplog.text
    assert "tiny: Its graph gives only the logits of the last token" in caplog.text
    caplog.clear()
    write_optimum(tmp_path, oracle[1], GraphOptions(positions="index", continues=False))
    load_onnx(tmp_path).close()
    assert "tiny: Its graph batches only sequences of equal length" in caplog.text
    assert "tiny: Its graph takes one token at a time after the first call" in caplog.text


def test_a_plan_with_indices_out_of_bounds_is_refused(executor):
    with pytest.raises(ExecutorError, match="outside the vocabulary"):
        stepper(executor).run([Run([5, VOCAB, 7], 1)])
    config = onnx_config(Path("unused"), max_num_batched_tokens=640)
    larger = Stepper(executor, config, num_blocks=NUM_BLOCKS + 200, max_model_len=128)
    with pytest.raises(ExecutorError, match="outside the KV pool"):
        larger.run([Run(PROMPTS[5], 1) for _ in range(16)])


def test_a_closed_executor_refuses(oracle, tmp_path):
    loaded = load_onnx(write_optimum(tmp_path, oracle[1]))
    loaded.close()
    loaded.close()
    with pytest.raises(ExecutorError, match="was closed"):
        stepper(loaded).run([Run([5, 6], 1)])


def test_a_graph_that_onnx_runtime_refuses_is_one_sentence(oracle, tmp_path):
    folder = write_optimum(tmp_path, oracle[1])
    proto = onnx.load(str(folder / "model.onnx"))
    proto.graph.node[5].op_type = "NoSuchOperator"
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match=r"cannot load.*NoSuchOperator") as caught:
        load_onnx(folder)
    assert "\n" not in str(caught.value)
