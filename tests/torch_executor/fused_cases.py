"""Compares the fused kernels with torch's own operations: interpreted, or on a GPU; see `kernel_cases`.

Prints one JSON line per case: its name and the largest relative difference; and for each architecture
how many of its modules were fused and how many of its sequences differ from `generate`'s.
"""

import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import torch
from torch.nn import functional

from engine.executors.torch.checkpoint import weight_bytes
from engine.executors.torch.fused_gate import gated
from engine.executors.torch.fused_norm import FusedRmsNorm, add_rms_norm, fused_norm, rms_norm
from engine.executors.torch.fused_rotary import rotate
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.kv_store import store_kv
from engine.executors.torch.skinny_linear import skinny_linear
from engine.models.transformers_spec import KvLayer
from tests.fakes.tiny_transformers import TINY, greedy, save_tiny, tiny_hf_model
from tests.parity.stepper import Run
from tests.torch_executor.loaded import load_torch, stepper

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def random(*shape, dtype):
    return torch.randn(*shape, device=DEVICE).to(dtype)


def largest(got, expected):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    return float(((got.float() - expected.float()).abs() / (1 + expected.float().abs())).max())


def norm_of(source, weight, offset):
    wide = source.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (normed * (offset + weight.float())).to(source.dtype)


def norms(dtype):
    """A batch of tokens, heads that are part of a larger projection, and odd sizes."""
    parts = random(1, 5, 3 * 24 + 7, dtype=dtype)
    for name, source in {
        "tokens": random(1, 5, 2100, dtype=dtype),
        "one token": random(1, 1, 64, dtype=dtype),
        "rows": random(7, 33, dtype=dtype),
        "heads of a part": parts[..., 7:].view(1, 5, 3, 24),
        "heads of one token": parts[:, :1, 7:].view(1, 1, 3, 24).transpose(1, 2),
        "heads of tokens": parts[..., 7:].view(1, 5, 3, 24).transpose(1, 2),
        "a part": parts[..., 4:36],
        "transposed": random(1, 6, 40, dtype=dtype).transpose(1, 2),
        "batches of parts": random(2, 3, 5, 40, dtype=dtype)[..., 8:],
        "nothing": random(0, 16, dtype=dtype),
    }.items():
        for offset in (0.0, 1.0):
            weight = random(source.shape[-1], dtype=dtype)
            got = rms_norm(source, weight, 1e-6, offset)
            if source.numel():
                yield f"norm {name}", largest(got, norm_of(source, weight, offset))


def sums_and_norms(dtype):
    for size in (48, 1100):
        norm = FusedRmsNorm(torch.nn.Parameter(random(size, dtype=dtype), False), 1e-6, 1.0)
        one, other = random(1, 3, size, dtype=dtype), random(1, 3, size, dtype=dtype)
        total, normed = add_rms_norm(one, other, norm)
        yield f"sum {size}", largest(total, one + other)
        yield f"norm of sum {size}", largest(normed, norm_of(total, norm.weight, 1.0))


def gates(dtype):
    activations = {
        "silu": functional.silu,
        "gelu_tanh": lambda source: functional.gelu(source, approximate="tanh"),
        "gelu": functional.gelu,
    }
    for name, activation in activations.items():
        for size in (48, 1030):
            both = random(1, 3, 2 * size, dtype=dtype)
            gate, up = both.float().chunk(2, dim=-1)
            expected = (activation(gate) * up).to(dtype)
            yield f"gate {name}", largest(gated(both, name), expected)


def few_rows(dtype):
    """One to four rows through long, short and odd layers, with bias and gate or without."""
    for rows, size, k in ((1, 12, 576), (2, 8, 33), (3, 5, 1100), (4, 16, 48)):
        for bias_size in (0, 2 * size):
            weight = random(2 * size, k, dtype=dtype) / k**0.5
            bias = random(bias_size, dtype=dtype) if bias_size else None
            source = random(1, rows, k + 3, dtype=dtype)[..., 3:]
            product = functional.linear(
                source.float(), weight.float(), None if bias is None else bias.float()
            )
            got = skinny_linear(source, weight, bias, "none")
            yield f"few {rows}", largest(got, product.to(dtype))
            more = random(1, rows, 2 * size, dtype=dtype)
            got = skinny_linear(source, weight, bias, "none", more)
            yield f"few plus {rows}", largest(got, (product + more.float()).to(dtype))
            gate, up = product.chunk(2, dim=-1)
            got = skinny_linear(source, weight, bias, "silu")
            yield f"few gated {rows}", largest(got, (functional.silu(gate) * up).to(dtype))


def halves_turned(source):
    first, second = source.chunk(2, dim=-1)
    return torch.cat([-second, first], -1)


def rotations(dtype):
    for size, tokens in ((16, 5), (64, 1), (24, 4)):
        parts = random(1, tokens, 7 * size, dtype=dtype).view(1, tokens, 7, size).transpose(1, 2)
        query, key = parts[:, :4], parts[:, 4:6]
        angles = torch.randn(1, tokens, size // 2, device=DEVICE).repeat(1, 1, 2)
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        for got, source in zip(rotate(query, key, cos, sin), (query, key), strict=True):
            wide = source.float()
            expected = wide * cos.float()[:, None] + halves_turned(wide) * sin.float()[:, None]
            yield f"rotary {size}", largest(got, expected.to(dtype))


def stores(dtype):
    for kept in {dtype, torch.float16}:
        layers = [KvLayer(2, 24, 12)]
        options = {"num_blocks": 9, "block_size": 8, "dtype": kept, "device": DEVICE}
        ours, expected = KvPool(layers, **options), KvPool(layers, **options)
        slots = torch.tensor([3, 70, 0, 41], device=DEVICE)
        parts = random(4, 2 * 24 + 2 * 12 + 5, dtype=dtype)
        key, value = parts[:, 5:53].view(4, 2, 24), parts[:, 53:].view(4, 2, 12)
        store_kv(ours, 0, slots, key, value)
        expected.write(0, slots, key, value)
        yield f"store {str(kept).split('.')[1]}", largest(ours.keys[0], expected.keys[0])
        yield f"store {str(kept).split('.')[1]}", largest(ours.values[0], expected.values[0])


def unlike():
    """Norms that must not be taken for one of the known kinds, and one that must."""

    class LikeRMSNorm(FusedRmsNorm):
        def forward(self, hidden_states):
            return norm_of(hidden_states, self.weight, 0.0) * 1.01

    class OtherEpsilonRMSNorm(FusedRmsNorm):
        def forward(self, hidden_states):
            wide = hidden_states.float()
            return self.weight * wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)

    class RightRMSNorm(FusedRmsNorm):
        def forward(self, hidden_states):
            return norm_of(hidden_states, self.weight, 1.0)

    weight = torch.nn.Parameter(random(32, dtype=torch.float32), requires_grad=False)
    assert fused_norm(LikeRMSNorm(weight, 1e-6, 0.0), torch.float32) is None
    assert fused_norm(OtherEpsilonRMSNorm(weight, 1e-6, 0.0), torch.float32) is None
    assert fused_norm(RightRMSNorm(weight, 1e-6, 0.0), torch.float32) is not None
    # A weight of another type may change the type of the result.
    assert fused_norm(OtherEpsilonRMSNorm(weight, 1e-5, 0.0), torch.float32) is not None
    assert fused_norm(OtherEpsilonRMSNorm(weight, 1e-5, 0.0), torch.float16) is None


def fused_parts(model):
    """How many modules of each kind are fused."""
    kinds = Counter(type(module).__name__ for module in model.modules())
    return {
        "norm": kinds["FusedRmsNorm"],
        "mlp": kinds["FusedMlp"],
        "projections": kinds["ProjectionPart"],
        "rotary": sum("forward" in vars(module) for module in model.modules())
        - (layers := sum("forward" in vars(m) and hasattr(m, "mlp") for m in model.modules())),
        "layers": layers,
    }


def architecture(name):
    """Counts of fused modules, and of wrong sequences, prefilled in chunks side by side."""
    model = tiny_hf_model(name)
    prompts = [list(range(5, 5 + length)) for length in (3, 15)]
    with tempfile.TemporaryDirectory() as directory:
        path = save_tiny(Path(directory), model)
        # Graphs are recorded where there is a GPU.
        executor = load_torch(path, device=DEVICE.type, attention="triton", cuda_graphs=None)
    copied = executor.info.weight_bytes - weight_bytes(model)
    assert abs(copied) < 1000, copied  # merged weights are not copies; buffers may be
    runs = [Run(prompt, 3, chunks=[13], arrival=row) for row, prompt in enumerate(prompts)]
    stepper(executor).run(runs)
    pairs = zip(runs, prompts, strict=True)
    wrong = sum(run.tokens != greedy(model, prompt, 3) for run, prompt in pairs)
    return {"wrong": wrong, **fused_parts(executor._model)}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    unlike()
    for suffix, dtype in TYPES.items():
        for cases in (norms, sums_and_norms, gates, few_rows, rotations, stores):
            for name, difference in cases(dtype):
                print(json.dumps([f"{name} {suffix}", difference]), flush=True)
    for name in os.environ.get("FUSED_ARCHITECTURES", " ".join(TINY)).split():
        print(json.dumps([name, architecture(name)]), flush=True)


if __name__ == "__main__":
    main()
