"""Compiles the Triton kernels for absent GPUs."""

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from engine.executors.torch.fused_kernels import (
    add_norm_kernel,
    gate_kernel,
    rms_norm_kernel,
    rotary_kernel,
    skinny_kernel,
    store_kernel,
)
from engine.executors.torch.tiling import tile_keys
from engine.executors.torch.triton_kernels import attend_kernel, merge_kernel

FLOATS = {"partial_sums", "partial_max", "partial_norm", "sinks"}
INTEGERS = {"tile_batch", "tile_first", "query_start", "context_lens", "block_tables"}
LONG_INTEGERS = {"slots"}
NUMBERS = {"scale", "softcap", "eps", "offset"}
ELEMENTS = {
    *("query", "key", "value", "keys", "values", "output", "rotated_query", "rotated_key"),
    *("source", "weight", "bias", "residual", "added", "sums", "both", "cos", "sin"),
}
WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4}


def types_of(kernel, element):
    kinds = {}
    for name in kernel.arg_names:
        if name in ELEMENTS:
            kinds[name] = f"*{element}"
        elif name in FLOATS:
            kinds[name] = "*fp32"
        elif name in INTEGERS:
            kinds[name] = "*i32"
        elif name in LONG_INTEGERS:
            kinds[name] = "*i64"
        else:
            kinds[name] = "fp32" if name in NUMBERS else "i32"
    return kinds


def compile_for(kernel, capability, element, **constants):
    kinds = types_of(kernel, element) | dict.fromkeys(constants, "constexpr")
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(fn=kernel, signature=kinds, constexprs=places)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32))


def attend(capability, element, head, *, splits, sinks=False):
    compiled = compile_for(
        attend_kernel,
        capability,
        element,
        SPLITS=splits,
        GROUP=4,
        TILE_QUERIES=1 if splits > 1 else 16,
        TILE_ROWS=16 if splits > 1 else 64,
        TILE_KEYS=tile_keys(key_bytes=head * WIDTH[element]),
        BLOCK_SIZE=32,
        KEY=head,
        KEY_PADDED=head,
        VALUE=head,
        VALUE_PADDED=head,
        HAS_SINKS=sinks,
        ONE_QUERY=splits > 1,
    )
    return f"attend {element} {head} {splits}", compiled.metadata.shared


def few_rows(k, *, rows, bias=False, activation="none"):
    return {
        "K": k,
        "ROWS": rows,
        "TILE": 4,
        "TILE_K": 1024 // rows,
        "HAS_BIAS": bias,
        "HAS_RESIDUAL": bias,
        "ACTIVATION": activation,
    }


def shared_memory():
    """The name of each kernel and the bytes of shared memory that a block of it uses."""
    yield attend(90, "bf16", 128, splits=1)
    yield attend(90, "bf16", 128, splits=4, sinks=True)
    yield attend(80, "fp16", 256, splits=1)
    merged = compile_for(
        merge_kernel,
        90,
        "bf16",
        SPLITS=4,
        SPLITS_PADDED=4,
        VALUE=128,
        VALUE_PADDED=128,
        HAS_SINKS=True,
    )
    yield "merge", merged.metadata.shared
    head = {"KEY": 64, "KEY_PADDED": 64, "VALUE": 64, "VALUE_PADDED": 64}
    for kernel, constants in (
        (rms_norm_kernel, {"SIZE": 576, "PADDED": 1024}),
        (add_norm_kernel, {"SIZE": 576, "PADDED": 1024}),
        # Triton makes an argument a constant if it is one.
        (rms_norm_kernel, {"SIZE": 576, "PADDED": 1024, "inner": 1}),
        (rotary_kernel, {"HEAD": 64, "PADDED": 64, "ROTARY": 64, "heads": 1, "kv_heads": 1}),
        (store_kernel, head | {"kv_heads": 1}),
        (skinny_kernel, few_rows(576, rows=1, activation="silu") | {"rows": 1, "size": 1}),
        (gate_kernel, {"SIZE": 1536, "TILE": 1024, "ACTIVATION": "silu"}),
        (gate_kernel, {"SIZE": 1536, "TILE": 1024, "ACTIVATION": "gelu_tanh"}),
        (gate_kernel, {"SIZE": 1536, "TILE": 1024, "ACTIVATION": "gelu"}),
        (rotary_kernel, {"HEAD": 64, "PADDED": 64, "ROTARY": 64}),
        (store_kernel, head),
        (skinny_kernel, few_rows(1536, rows=1)),
        (skinny_kernel, few_rows(576, rows=4)),
        (skinny_kernel, few_rows(8192, rows=1, bias=True)),
        (skinny_kernel, few_rows(576, rows=1, activation="silu")),
        (skinny_kernel, few_rows(576, rows=4, activation="silu")),
    ):
        compiled = compile_for(kernel, 90, "bf16", **constants)
        yield kernel.__name__, compiled.metadata.shared
