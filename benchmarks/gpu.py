"""Correctness and throughput of the torch executor on a GPU.

    python benchmarks/gpu.py [--json FILE] [--device cpu --model tiny] [--profile]

Needs torch, triton, transformers and the built wheel, but no checkpoint and no network: weights are
seeded random ones of a named shape. Sections:

1. parity: greedy tokens in float32, compared with transformers' `generate` on the same weights;
2. graphs: greedy tokens with CUDA graphs, compared with the same steps without;
3. throughput: decoded tokens per second by batch size, without and with graphs, and with
   transformers' continuous batching on the same weights; and the bandwidth roofline, which is
   batch size × measured read bandwidth / (bytes of the weights + keys and values of the streams).
   Batch sizes are skipped once the time limit is reached.

With `--profile` there is only a fourth section instead: where the time of a decode step goes, by kernel.

On a CPU parity uses the reference attention, graphs and transformers' continuous batching are left
out, and the figures are not meaningful: this mode is for testing the script.
"""

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, GenerationConfig

from benchmarks.machine import write_result
from engine.api.config import EngineConfig
from engine.api.errors import PravahaError
from engine.executors.base import SAMPLING_DTYPE, StepPlan
from engine.executors.torch.checkpoint import DUMMY_SEED
from engine.executors.torch.executor import TorchExecutor
from engine.executors.torch.opening import read_spec

BLOCK_SIZE = 32
MAX_SECONDS = 450.0

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "smollm2-135m": (
        "llama",
        {
            "vocab_size": 49152,
            "hidden_size": 576,
            "intermediate_size": 1536,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "max_position_embeddings": 8192,
            "tie_word_embeddings": True,
        },
    ),
    "qwen3-0.6b": (
        "qwen3",
        {
            "vocab_size": 151936,
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 8192,
            "tie_word_embeddings": True,
        },
    ),
    "tiny": (
        "gemma3_text",
        {
            "vocab_size": 256,
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "sliding_window": 24,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "max_position_embeddings": 512,
            "initializer_range": 0.3,
        },
    ),
}


@dataclass(frozen=True)
class Loaded:
    """A loaded executor and the facts that `Driver` needs."""

    executor: TorchExecutor
    config: EngineConfig
    max_model_len: int
    kv_bytes_per_token: int


def shape_config(name: str) -> Any:
    """The transformers configuration of a shape."""
    model_type, fields = SHAPES[name]
    return CONFIG_MAPPING[model_type](**fields)


def load(name: str, *, rows: int, max_model_len: int, **settings: Any) -> Loaded:
    """An executor with seeded random weights."""
    with tempfile.TemporaryDirectory() as folder:
        shape_config(name).save_pretrained(folder)
        config = EngineConfig(
            Path(folder),
            name,
            max_num_seqs=rows,
            block_size=BLOCK_SIZE,
            dummy_weights=True,
            **settings,
        )
        spec, parameters = read_spec(config.model, config, stored=None)
        executor = TorchExecutor.load(
            spec,
            config,
            num_blocks=rows * -(-max_model_len // BLOCK_SIZE),
            max_model_len=max_model_len,
            weight_format="dummy",
            parameters=parameters,
            progress=lambda share: None,
        )
    width = 4 if executor.info.kv_dtype == "f32" else 2
    return Loaded(executor, config, max_model_len, spec.kv_elements_per_token * width)


class Driver:
    """Generates greedily with an executor, without a scheduler; every row has its own blocks."""

    def __init__(self, loaded: Loaded, prompts: list[list[int]]) -> None:
        rows = len(prompts)
        blocks = -(-loaded.max_model_len // BLOCK_SIZE)
        self._executor = loaded.executor
        self._tables = np.arange(rows * blocks, dtype=np.int32).reshape(rows, blocks)
        self._sampling = np.zeros(rows, SAMPLING_DTYPE)
        self._sampling["top_p"] = self._sampling["repetition_penalty"] = 1
        self._sampling["num_logprobs"] = -1
        self._token_table = np.zeros((rows, 1), np.int32)
        self._lengths = np.zeros(rows, np.int32)
        self._pending = [np.array(prompt, np.int32) for prompt in prompts]
        self.tokens: list[list[int]] = [[] for _ in prompts]

    def step(self) -> None:
        """Compute the pending tokens of every row, and sample the next token of each."""
        counts = np.array([len(tokens) for tokens in self._pending], np.int32)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        flat = np.concatenate(self._pending)
        positions = np.arange(len(flat), dtype=np.int32) - np.repeat(starts[:-1], counts)
        rows = np.arange(len(counts), dtype=np.int32)
        plan = StepPlan(
            rows=rows,
            query_start=starts,
            token_ids=flat,
            positions=(positions + np.repeat(self._lengths, counts)).astype(np.int32),
            needs_logits=np.ones(len(rows), np.uint8),
            block_tables=self._tables,
            token_table=self._token_table,
            num_tokens=self._lengths + counts,
            penalty_start=self._lengths + counts,
            sampling=self._sampling,
            bias_rows=np.zeros(0, np.int32),
            bias_ids=np.zeros(0, np.int32),
            bias_values=np.zeros(0, np.float32),
        )
        sampled = self._executor.execute(plan).sampled
        self._lengths = (self._lengths + counts).astype(np.int32)
        self._pending = [sampled[row : row + 1].copy() for row in rows]
        for row, token in enumerate(sampled.tolist()):
            self.tokens[row].append(token)


def prompts_of(count: int, length: int, vocab_size: int) -> list[list[int]]:
    """Reproducible prompts of random token ids."""
    generator = np.random.default_rng(7)
    return generator.integers(3, vocab_size, (count, length)).tolist()


def greedy(loaded: Loaded, prompts: list[list[int]], count: int) -> list[list[int]]:
    """`count` greedy tokens of every prompt."""
    driver = Driver(loaded, prompts)
    for _ in range(count):
        driver.step()
    return driver.tokens


def agreement(got: list[list[int]], expected: list[list[int]]) -> float:
    """Fraction of tokens before each row's first difference."""
    equal = 0
    for one, other in zip(got, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            if a != b:
                break
            equal += 1
    return equal / sum(map(len, expected))


def transformers_model(name: str, dtype: torch.dtype, device: torch.device, **options: Any) -> Any:
    """Transformers' model with the same weights as the executor."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []), device:
        torch.manual_seed(DUMMY_SEED)
        model = AutoModelForCausalLM.from_config(shape_config(name), dtype=dtype, **options)
    return model.to(device).eval()


def parity(device: str, names: list[str]) -> list[dict[str, Any]]:
    """Agreement of greedy tokens in float32 with `generate`; 1.0 if all are equal."""
    rows, count = 5, 24
    results = []
    for name in names:
        loaded = load(name, rows=rows, max_model_len=256, device=device, dtype="f32")
        vocab = shape_config(name).vocab_size
        prompts = prompts_of(rows, 70, vocab)
        got = greedy(loaded, prompts, count)
        loaded.executor.close()
        model = transformers_model(name, torch.float32, torch.device(device))
        with torch.inference_mode():
            output = model.generate(
                torch.tensor(prompts, device=device),
                max_new_tokens=count,
                min_new_tokens=count,
                do_sample=False,
                eos_token_id=None,
                pad_token_id=0,
            )
        expected = output[:, 70:].tolist()
        del model
        share = agreement(got, expected)
        results.append({"model": name, "backend": loaded.executor.info.dispatch, "equal": share})
    return results


def graphs_equal(names: list[str]) -> list[dict[str, Any]]:
    """Agreement of greedy tokens with and without graphs, at sizes that need padding."""
    results = []
    for name in names:
        for rows in (1, 3, 11):
            prompts = prompts_of(rows, 40, shape_config(name).vocab_size)
            tokens = []
            for graphs in (False, True):
                settings = {"device": "cuda", "dtype": "f32", "cuda_graphs": graphs}
                loaded = load(name, rows=rows, max_model_len=128, **settings)
                tokens.append(greedy(loaded, prompts, 24))
                loaded.executor.close()
            results.append({"model": name, "rows": rows, "equal": agreement(*tokens)})
    return results


def read_bandwidth(device: torch.device) -> float:
    """Bytes per second read by summing a large array."""
    size = (1 << 30) if device.type == "cuda" else (1 << 26)
    array = torch.ones(size, dtype=torch.int8, device=device).view(torch.float32)
    best = 0.0
    for _ in range(6):
        started = clock(device)
        array.sum()
        best = max(best, size / (clock(device) - started))
    return best


def clock(device: torch.device) -> float:
    """The time in seconds, after synchronizing with the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def decode_rate(
    loaded: Loaded, prompts: list[list[int]], count: int, device: torch.device
) -> float:
    """Decoded tokens per second, without the prefill and the first steps."""
    driver = Driver(loaded, prompts)
    for _ in range(4):
        driver.step()
    started = clock(device)
    for _ in range(count):
        driver.step()
    return len(prompts) * count / (clock(device) - started)


def peer_rate(name: str, prompts: list[list[int]], count: int, device: torch.device) -> float:
    """Tokens per second of transformers' continuous batching, from the difference of two lengths."""
    model = transformers_model(name, torch.bfloat16, device, attn_implementation="sdpa")
    times = []
    for length in (count // 4, count // 4, count):  # the first run warms up
        generation = GenerationConfig(
            max_new_tokens=length, do_sample=False, eos_token_id=-1, pad_token_id=0
        )
        started = clock(device)
        model.generate_batch(inputs=prompts, generation_config=generation)
        times.append(clock(device) - started)
    return len(prompts) * (count - count // 4) / (times[2] - times[1])


def throughput(name: str, batches: list[int], device: torch.device, left: Callable[[], float]):
    """Yields one result per batch size."""
    context, count = (64, 64) if device.type == "cuda" else (16, 4)
    bandwidth = read_bandwidth(device)
    for rows in batches:
        if left() < 30:
            yield {"model": name, "batch": rows, "skipped": "out of time"}
            continue
        prompts = prompts_of(rows, context, shape_config(name).vocab_size)
        row: dict[str, Any] = {"model": name, "batch": rows, "bandwidth": bandwidth}
        length = context + count + 8
        for key, graphs in (("eager", False), ("graphs", True)):
            if graphs and device.type != "cuda":
                continue
            try:
                settings = {"device": device.type, "dtype": "bf16", "cuda_graphs": graphs}
                loaded = load(name, rows=rows, max_model_len=length, **settings)
                row[key] = decode_rate(loaded, prompts, count, device)
                info = loaded.executor.info
                read = info.weight_bytes + rows * (context + count / 2) * loaded.kv_bytes_per_token
                row["roofline"] = rows * bandwidth / read
                loaded.executor.close()
            except (PravahaError, RuntimeError) as error:
                row[f"{key} failed"] = str(error).splitlines()[0]
        if device.type != "cuda":  # on a CPU the peer reserves most of the machine's memory
            yield row
            continue
        try:
            row["transformers"] = peer_rate(name, prompts, count, device)
        except Exception as error:  # a peer that does not run must not end the benchmark
            row["transformers failed"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        yield row


def step_profile(name: str, rows: int, device: torch.device) -> dict[str, Any]:
    """Time of a decode step with the default settings, its kernels, and those that take longest."""
    prompts = prompts_of(rows, 64, shape_config(name).vocab_size)
    loaded = load(name, rows=rows, max_model_len=256, device=device.type, dtype="bf16")
    driver, steps = Driver(loaded, prompts), 20
    for _ in range(6):
        driver.step()
    started = clock(device)
    for _ in range(steps):
        driver.step()
    step_us = (clock(device) - started) / steps * 1e6
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        for _ in range(steps):
            driver.step()
        clock(device)
    loaded.executor.close()
    kernels = [event for event in profiler.key_averages() if event.device_type != DeviceType.CPU]
    kernels.sort(key=lambda event: -event.self_device_time_total)
    return {
        "model": name,
        "batch": rows,
        "step_us": step_us,
        "kernels": sum(event.count for event in kernels) / steps,
        "device_us": sum(event.self_device_time_total for event in kernels) / steps,
        "longest": [
            [event.key[:80], event.count / steps, event.self_device_time_total / steps]
            for event in kernels[:20]
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], default="cuda", help="device of the executor"
    )
    parser.add_argument(
        "--model", choices=SHAPES, action="append", help="model shape; may be repeated"
    )
    parser.add_argument("--batch", type=int, action="append", help="batch size; may be repeated")
    parser.add_argument(
        "--profile", action="store_true", help="show where the time of a decode step goes, only"
    )
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch sees no GPU: nothing was measured.")
    device = torch.device(options.device)
    deadline = time.monotonic() + MAX_SECONDS
    names = options.model or ["smollm2-135m", "qwen3-0.6b"]
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.processor(),
        "torch": torch.__version__,
        "parity": [],
        "graphs": [],
        "throughput": [],
    }

    def emit(section: str, results: Any) -> None:
        for result in results:
            report[section].append(result)
            print(section, json.dumps(result), flush=True)

    print(report["date"], report["device"], "torch", report["torch"], flush=True)
    if options.profile:
        for name in names:
            for rows in options.batch or [1, 64]:
                found = step_profile(name, rows, device)
                longest = found.pop("longest")
                print("profile", json.dumps(found), flush=True)
                for kernel, count, time_us in longest:
                    print(f"{time_us:9.1f} us {count:7.1f} x {kernel}", flush=True)
        return
    emit("parity", parity(options.device, sorted({"tiny", *names})))
    if device.type == "cuda":
        emit("graphs", graphs_equal(["tiny", names[0]]))
    else:
        print("graphs: skipped, there is no GPU")
    for name in names:
        rows = throughput(
            name, options.batch or [1, 4, 16, 64], device, lambda: deadline - time.monotonic()
        )
        emit("throughput", rows)
    if options.json:
        write_result(options.json, report)
    wrong = [r for r in report["parity"] + report["graphs"] if r["equal"] < 1]
    if wrong:
        sys.exit(f"{len(wrong)} comparisons differ: the figures are not valid.")


if __name__ == "__main__":
    main()
