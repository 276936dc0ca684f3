"""Compares the Triton kernels with the reference attention: interpreted, or on a GPU.

Runs in a separate process. With TRITON_INTERPRET=1, which Triton reads on import, the kernels are
interpreted on the CPU; without it they are compiled and run on a GPU. Prints one JSON line per case: its
name and the largest difference from the reference.
"""

import json
import os
import tempfile
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import torch

from engine.executors.torch import executor
from engine.executors.torch.attention import AttentionTraits
from engine.executors.torch.decode_graphs import CudaRecorder
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.reference_attention import ReferenceStep
from engine.executors.torch.step_layout import StepLayout
from engine.executors.torch.tiling import MAX_SPLIT_QUERIES, split_count
from engine.executors.torch.triton_attention import triton_step
from engine.models.transformers_spec import KvLayer
from tests.fakes.tiny_transformers import greedy, save_tiny, tiny_hf_model
from tests.parity.stepper import Run
from tests.torch_executor.loaded import load_torch, stepper

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
# The interpreter multiplies the stored integers of bfloat16.
HALF = {"f16": torch.float16} if INTERPRETED else {"f16": torch.float16, "bf16": torch.bfloat16}
# name: (queries and contexts a row, heads, KV heads, key size, value size, block size, traits)
PLAIN = {"scale": 0.35}
CASES = {
    "one decode": ([(1, 9)], 2, 2, 16, 16, 8, PLAIN),
    "first token": ([(1, 1)], 2, 1, 16, 16, 8, PLAIN),
    "decode rows": ([(1, 5), (1, 64), (1, 65), (1, 131)], 4, 2, 16, 16, 16, PLAIN),
    "prefill": ([(33, 33), (7, 7)], 4, 2, 16, 16, 8, PLAIN),
    "chunk after chunk": ([(20, 77)], 4, 4, 32, 32, 8, PLAIN),
    "mixed": ([(1, 40), (18, 18), (1, 1), (5, 90)], 6, 2, 16, 16, 8, PLAIN),
    "odd sizes": ([(3, 20), (1, 70)], 6, 2, 24, 12, 5, PLAIN),
    "split decode": ([(1, 700)], 4, 1, 16, 16, 32, PLAIN),
    "split verify": ([(4, 600), (8, 300)], 2, 1, 16, 16, 32, PLAIN),
    "window": ([(1, 90), (30, 60)], 4, 2, 16, 16, 8, PLAIN | {"sliding_window": 12}),
    "split window": ([(1, 900)], 2, 1, 16, 16, 32, PLAIN | {"sliding_window": 600}),
    "softcap": ([(1, 30), (9, 20)], 4, 2, 16, 16, 8, PLAIN | {"softcap": 1.5}),
    "sinks": ([(1, 30), (9, 20)], 4, 2, 16, 16, 8, PLAIN | {"sinks": True}),
    "split sinks": ([(1, 700)], 2, 1, 16, 16, 32, PLAIN | {"sinks": True}),
    "twelve long rows": ([(1, 300 + row) for row in range(12)], 2, 1, 16, 16, 32, PLAIN),
}


def layout_of(runs, block_size, generator):
    width = max(-(-context // block_size) for _, context in runs)
    blocks = generator.permutation(len(runs) * width).astype(np.int32)
    tables = blocks.reshape(len(runs), width)
    lengths = [queries for queries, _ in runs]
    slots = [
        tables[row, position // block_size] * block_size + position % block_size
        for row, (queries, context) in enumerate(runs)
        for position in range(context - queries, context)
    ]
    nothing = np.zeros(0, np.int64)
    return StepLayout(
        query_start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        context_lens=np.array([context for _, context in runs], np.int32),
        block_tables=np.ascontiguousarray(tables),
        slots=np.array(slots, np.int64),
        sampled_rows=nothing,
        sampled_tokens=nothing,
        draft_index=nothing,
        has_draft=nothing.astype(bool),
    )


def difference(runs, heads, kv_heads, key_size, value_size, block_size, traits, dtype):
    generator = np.random.default_rng(0)
    torch.manual_seed(0)
    layout = layout_of(runs, block_size, generator)
    pool = KvPool(
        [KvLayer(kv_heads, key_size, value_size)],
        num_blocks=layout.block_tables.size,
        block_size=block_size,
        dtype=dtype,
        device=DEVICE,
    )
    pool.keys[0].normal_(0, 1)
    pool.values[0].normal_(0, 1)
    # Memory outside a row's context must not be read: fill the scratch block with NaN.
    pool.keys[0][pool.scratch_block] = float("nan")
    tokens = len(layout.slots)
    query = torch.randn(tokens, heads, key_size, dtype=dtype, device=DEVICE)
    key = torch.randn(tokens, kv_heads, key_size, dtype=dtype, device=DEVICE)
    value = torch.randn(tokens, kv_heads, value_size, dtype=dtype, device=DEVICE)
    traits = dict(traits)
    if traits.get("sinks"):
        traits["sinks"] = torch.randn(heads, device=DEVICE)
    traits = AttentionTraits(**traits)
    got = triton_step(pool, layout, DEVICE).attend(0, query, key, value, traits)
    expected = ReferenceStep(pool, layout, DEVICE).attend(0, query, key, value, traits)
    assert got.dtype == expected.dtype == dtype
    assert got.shape == expected.shape
    return float((got.float() - expected.float()).abs().max())


def wrong_tokens(name):
    """Number of sequences, prefilled in chunks side by side, whose tokens differ from `generate`'s."""
    model = tiny_hf_model(name)
    prompts = [list(range(5, 5 + length)) for length in (3, 15)]
    with tempfile.TemporaryDirectory() as directory:
        loaded = load_torch(
            save_tiny(Path(directory), model), device=DEVICE.type, attention="triton"
        )
        assert loaded.info.dispatch == f"{DEVICE.type}-triton"
        runs = [Run(prompt, 3, chunks=[13], arrival=row) for row, prompt in enumerate(prompts)]
        stepper(loaded).run(runs)
    pairs = zip(runs, prompts, strict=True)
    return sum(run.tokens != greedy(model, prompt, 3) for run, prompt in pairs)


def wrong_tokens_of_graphs():
    """The same with padded decode steps: CUDA graphs, or without a GPU the computation they record."""
    model = tiny_hf_model("llama")
    prompts = [[5 + row] * (3 + row) for row in range(5)]
    sizes = []
    with tempfile.TemporaryDirectory() as directory:
        loaded = load_torch(
            save_tiny(Path(directory), model), device=DEVICE.type, attention="triton"
        )
        recorder = (lambda closure: closure) if INTERPRETED else CudaRecorder()

        def record(closure):
            recorded = recorder(closure)

            def replay():
                decoded = recorded()
                sizes.append(len(decoded.logits))
                return decoded

            return replay

        loaded.use_graphs(max_rows=4, max_model_len=128, record=record)
        captured = len(sizes)
        runs = [Run(prompt, 3) for prompt in prompts]
        stepper(loaded).run(runs[:3])  # three rows run in the graph of four
        assert sizes[captured:] == [4, 4]
        stepper(loaded).run(runs[3:4])
        assert sizes[captured + 2 :] == [1, 1]
        everything = [Run(prompt, 3) for prompt in prompts]
        stepper(loaded).run(everything)  # five: above the largest graph
        assert sizes[captured + 4 :] == []
    runs = [*runs[:4], *everything]
    expected = [greedy(model, run.prompt, 3) for run in runs]
    return sum(run.tokens != tokens for run, tokens in zip(runs, expected, strict=True))


def main():
    torch.set_num_threads(1)
    for name, case in CASES.items():
        print(json.dumps([name, difference(*case, torch.float32)]), flush=True)
    for suffix, dtype in HALF.items():
        for name in ("mixed", "split decode") if INTERPRETED else CASES:
            print(json.dumps([f"{name} {suffix}", difference(*CASES[name], dtype)]), flush=True)
    # `fused_cases` covers the fused kernels, which take most of the time when they are interpreted.
    with patch.object(executor, "_fuse", Mock(return_value=None)) if INTERPRETED else nullcontext():
        print(json.dumps(["gpt_oss greedy", wrong_tokens("gpt_oss")]), flush=True)
        print(json.dumps(["graphs greedy", wrong_tokens_of_graphs()]), flush=True)
    # Check that the split cases do split their keys.
    for name, (runs, _, kv_heads, _, _, _, traits) in CASES.items():
        if name.startswith("split"):
            assert max(queries for queries, _ in runs) <= MAX_SPLIT_QUERIES
            longest = min(max(c for _, c in runs), traits.get("sliding_window", 10**9))
            processors = 4 if INTERPRETED else 132
            shape = {"kv_heads": kv_heads, "longest_context": longest, "processors": processors}
            assert split_count(tiles=2, **shape) > 1


if __name__ == "__main__":
    main()
