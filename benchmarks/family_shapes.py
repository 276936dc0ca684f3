"""The sizes of published models of several families, for GGUF files with random weights (`family_files.py`).

The sizes are those of the models' `config.json`: Qwen/Qwen3.5-0.8B and -4B (without their blocks for
multi-token prediction), LiquidAI/LFM2-1.2B and LFM2-8B-A1B, google/gemma-3-1b-it and gemma-4-E2B (their
text parts), allenai/OLMoE-1B-7B-0924 and openai/gpt-oss-20b with `GPT_OSS_LAYERS` of its 24 layers. All
files state the same context, OLMoE's a longer one than its config. Names of tensors and fields are those of
the `gguf` package.
"""

from collections.abc import Mapping
from dataclasses import dataclass

GPT_OSS_LAYERS = 6
CONTEXT = 32_768

Dims = tuple[int, ...]
Tensors = dict[str, Dims]


@dataclass(frozen=True, slots=True)
class FamilyShape:
    """The sizes of a model.

    Attributes:
        architecture: GGUF's name of it.
        vocabulary: number of tokens.
        fields: metadata, without the architecture before the keys.
        tensors: name → dimensions, the rows before the columns; experts before both.
        kv_reads: of each attention layer, its window (0 for all tokens) and the elements of the keys and
            values of a token that it reads.
        state_elements: elements of the states of a sequence, of all recurrent layers.
        experts: experts of a layer, and those that a token uses; both 0 for none.
        file_type: llama.cpp's name of the file's format; `mxfp4` has experts in MXFP4, the rest in Q8_0.
    """

    architecture: str
    vocabulary: int
    fields: Mapping[str, object]
    tensors: Mapping[str, Dims]
    kv_reads: tuple[tuple[int, int], ...]
    state_elements: int = 0
    experts: tuple[int, int] = (0, 0)
    file_type: str = "q4_k_m"


def _fields(
    layers: int, hidden: int, eps: float, theta: float, **others: object
) -> dict[str, object]:
    """The fields that all have, and `others`, in whose names `__` stands for a dot."""
    return {
        "block_count": layers,
        "context_length": CONTEXT,
        "embedding_length": hidden,
        "attention.layer_norm_rms_epsilon": eps,
        "rope.freq_base": theta,
    } | {key.replace("__", "."): value for key, value in others.items()}


def _attention(block: str, hidden: int, queries: int, keys: int) -> Tensors:
    return {
        f"{block}attn_q.weight": (queries, hidden),
        f"{block}attn_k.weight": (keys, hidden),
        f"{block}attn_v.weight": (keys, hidden),
        f"{block}attn_output.weight": (hidden, queries),
    }


def _norms(block: str, size: int, *names: str) -> Tensors:
    return {f"{block}{name}.weight": (size,) for name in names}


def _mlp(block: str, hidden: int, inner: int) -> Tensors:
    return {
        f"{block}ffn_gate.weight": (inner, hidden),
        f"{block}ffn_up.weight": (inner, hidden),
        f"{block}ffn_down.weight": (hidden, inner),
    }


def _experts(block: str, count: int, hidden: int, inner: int) -> Tensors:
    return {
        f"{block}ffn_gate_inp.weight": (count, hidden),
        f"{block}ffn_gate_exps.weight": (count, inner, hidden),
        f"{block}ffn_up_exps.weight": (count, inner, hidden),
        f"{block}ffn_down_exps.weight": (count, hidden, inner),
    }


def _qwen35(
    *, layers: int, hidden: int, heads: int, kv_heads: int, value_heads: int, inner: int
) -> FamilyShape:
    """Gated DeltaNet in three of four layers; 16 heads of keys."""
    vocabulary, key_heads, dim, head_dim, kernel = 248_320, 16, 128, 256, 4
    values = value_heads * dim
    channels = 2 * key_heads * dim + values
    tensors: Tensors = {"token_embd.weight": (vocabulary, hidden), "output_norm.weight": (hidden,)}
    recurrent = [(layer + 1) % 4 != 0 for layer in range(layers)]
    for layer, has_state in enumerate(recurrent):
        block = f"blk.{layer}."
        tensors |= _norms(block, hidden, "attn_norm", "post_attention_norm")
        if has_state:
            tensors |= {
                f"{block}attn_qkv.weight": (channels, hidden),
                f"{block}attn_gate.weight": (values, hidden),
                f"{block}ssm_conv1d.weight": (channels, kernel),
                f"{block}ssm_dt.bias": (value_heads,),
                f"{block}ssm_a": (value_heads,),
                f"{block}ssm_beta.weight": (value_heads, hidden),
                f"{block}ssm_alpha.weight": (value_heads, hidden),
                f"{block}ssm_norm.weight": (dim,),
                f"{block}ssm_out.weight": (hidden, values),
            }
        else:
            tensors |= _attention(block, hidden, heads * head_dim, kv_heads * head_dim)
            # Queries and output gates, in turn.
            tensors[f"{block}attn_q.weight"] = (2 * heads * head_dim, hidden)
            tensors |= _norms(block, head_dim, "attn_q_norm", "attn_k_norm")
        tensors |= _mlp(block, hidden, inner)
    return FamilyShape(
        "qwen35",
        vocabulary,
        _fields(
            layers, hidden, 1e-6, 1e7,
            feed_forward_length=inner,
            full_attention_interval=4,
            attention__head_count=heads,
            attention__head_count_kv=kv_heads,
            attention__key_length=head_dim,
            attention__value_length=head_dim,
            rope__dimension_count=head_dim // 4,
            rope__dimension_sections=[11, 11, 10, 0],
            ssm__conv_kernel=kernel,
            ssm__state_size=dim,
            ssm__group_count=key_heads,
            ssm__time_step_rank=value_heads,
            ssm__inner_size=values,
        ),
        tensors,
        kv_reads=((0, 2 * kv_heads * head_dim),) * (layers - sum(recurrent)),
        state_elements=sum(recurrent) * (values * dim + channels * (kernel - 1)),
    )  # fmt: skip


def _lfm2(
    layers: int, attending: tuple[int, ...], inner: int, experts: bool = False
) -> FamilyShape:
    """Gated short convolutions; with experts all layers but the first two have 4 of 32."""
    vocabulary, hidden, heads, kv_heads, head_dim, kernel = 65_536, 2048, 32, 8, 64, 3
    count, used, expert_inner, dense = (32, 4, 1792, 2) if experts else (0, 0, 0, layers)
    tensors: Tensors = {
        "token_embd.weight": (vocabulary, hidden),
        "token_embd_norm.weight": (hidden,),
    }
    for layer in range(layers):
        block = f"blk.{layer}."
        tensors |= _norms(block, hidden, "attn_norm", "ffn_norm")
        if layer in attending:
            tensors |= _attention(block, hidden, heads * head_dim, kv_heads * head_dim)
            tensors |= _norms(block, head_dim, "attn_q_norm", "attn_k_norm")
        else:
            tensors |= {
                f"{block}shortconv.in_proj.weight": (3 * hidden, hidden),
                f"{block}shortconv.conv.weight": (hidden, kernel),
                f"{block}shortconv.out_proj.weight": (hidden, hidden),
            }
        if layer < dense:
            tensors |= _mlp(block, hidden, inner)
        else:
            tensors |= _experts(block, count, hidden, expert_inner)
            tensors[f"{block}exp_probs_b.bias"] = (count,)
    routed = {
        "expert_count": count,
        "expert_used_count": used,
        "expert_feed_forward_length": expert_inner,
        "leading_dense_block_count": dense,
        "expert_gating_func": 2,  # sigmoid
    }
    return FamilyShape(
        "lfm2moe" if experts else "lfm2",
        vocabulary,
        _fields(
            layers, hidden, 1e-5, 1e6,
            feed_forward_length=inner,
            attention__head_count=heads,
            attention__head_count_kv=[kv_heads * (at in attending) for at in range(layers)],
            shortconv__l_cache=kernel,
        ) | (routed if experts else {}),
        tensors,
        kv_reads=((0, 2 * kv_heads * head_dim),) * len(attending),
        state_elements=(layers - len(attending)) * hidden * (kernel - 1),
        experts=(count, used),
    )  # fmt: skip


def _gemma3_1b() -> FamilyShape:
    vocabulary, layers, hidden, heads, head_dim, inner, window = (
        262_144, 26, 1152, 4, 256, 6912, 512,
    )  # fmt: skip
    tensors: Tensors = {"token_embd.weight": (vocabulary, hidden), "output_norm.weight": (hidden,)}
    for layer in range(layers):
        block = f"blk.{layer}."
        tensors |= _attention(block, hidden, heads * head_dim, head_dim)
        tensors |= _norms(block, head_dim, "attn_q_norm", "attn_k_norm")
        tensors |= _norms(block, hidden, *_NORMS_AROUND)
        tensors |= _mlp(block, hidden, inner)
    return FamilyShape(
        "gemma3",
        vocabulary,
        _fields(
            layers, hidden, 1e-6, 1e6,
            feed_forward_length=inner,
            attention__head_count=heads,
            attention__head_count_kv=1,
            attention__key_length=head_dim,
            attention__value_length=head_dim,
            attention__sliding_window=window,
        ),
        tensors,
        kv_reads=tuple(
            (window if (layer + 1) % 6 else 0, 2 * head_dim) for layer in range(layers)
        ),
    )  # fmt: skip


_NORMS_AROUND = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")


def _gemma4_e2b() -> FamilyShape:
    """Every fifth layer attends to all tokens with wider heads; the last 20 read the keys of earlier ones."""
    vocabulary, layers, hidden, heads, inner, window = 262_144, 35, 1536, 8, 6144, 512
    width, shared = 256, 20
    sliding = [(layer + 1) % 5 != 0 for layer in range(layers)]
    dims = [256 if slides else 512 for slides in sliding]
    inners = [inner if layer < layers - shared else 2 * inner for layer in range(layers)]
    tensors: Tensors = {
        "token_embd.weight": (vocabulary, hidden),
        "per_layer_token_embd.weight": (vocabulary, layers * width),
        "per_layer_model_proj.weight": (layers * width, hidden),
        "per_layer_proj_norm.weight": (width,),
        "rope_freqs.weight": (256,),
        "output_norm.weight": (hidden,),
    }
    for layer, (dim, size) in enumerate(zip(dims, inners, strict=True)):
        block = f"blk.{layer}."
        attention = _attention(block, hidden, heads * dim, dim)
        attention |= _norms(block, dim, "attn_q_norm", "attn_k_norm")
        if layer >= layers - shared:
            for name in ("attn_k", "attn_v", "attn_k_norm"):
                del attention[f"{block}{name}.weight"]
        tensors |= attention | _norms(block, hidden, *_NORMS_AROUND, "post_norm")
        tensors |= _mlp(block, hidden, size)
        tensors |= {
            f"{block}inp_gate.weight": (width, hidden),
            f"{block}proj.weight": (hidden, width),
            f"{block}layer_output_scale.weight": (1,),
        }
    return FamilyShape(
        "gemma4",
        vocabulary,
        _fields(
            layers, hidden, 1e-6, 1e6,
            feed_forward_length=inners,
            attention__head_count=heads,
            attention__head_count_kv=1,
            attention__key_length=512,
            attention__value_length=512,
            attention__key_length_swa=256,
            attention__value_length_swa=256,
            attention__shared_kv_layers=shared,
            attention__sliding_window=window,
            attention__sliding_window_pattern=sliding,
            embedding_length_per_layer_input=width,
            final_logit_softcapping=30.0,
            rope__freq_base_swa=1e4,
            rope__dimension_count=512,
            rope__dimension_count_swa=256,
        ),
        tensors,
        kv_reads=tuple(
            (window if slides else 0, 2 * dim) for slides, dim in zip(sliding, dims, strict=True)
        ),
    )  # fmt: skip


def _olmoe() -> FamilyShape:
    vocabulary, layers, hidden, heads, count, used, inner = 50_304, 16, 2048, 16, 64, 8, 1024
    tensors: Tensors = {
        "token_embd.weight": (vocabulary, hidden),
        "output.weight": (vocabulary, hidden),
        "output_norm.weight": (hidden,),
    }
    for layer in range(layers):
        block = f"blk.{layer}."
        tensors |= _attention(block, hidden, hidden, hidden)
        tensors |= _norms(block, hidden, "attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm")
        tensors |= _experts(block, count, hidden, inner)
    return FamilyShape(
        "olmoe",
        vocabulary,
        _fields(
            layers, hidden, 1e-5, 1e4,
            feed_forward_length=inner,
            attention__head_count=heads,
            attention__head_count_kv=heads,
            expert_count=count,
            expert_used_count=used,
        ),
        tensors,
        kv_reads=((0, 2 * hidden),) * layers,
        experts=(count, used),
    )  # fmt: skip


def _gpt_oss() -> FamilyShape:
    vocabulary, layers, hidden, heads, kv_heads = 201_088, GPT_OSS_LAYERS, 2880, 64, 8
    head_dim, count, used, inner, window = 64, 32, 4, 2880, 128
    tensors: Tensors = {
        "token_embd.weight": (vocabulary, hidden),
        "output.weight": (vocabulary, hidden),
        "output_norm.weight": (hidden,),
    }
    for layer in range(layers):
        block = f"blk.{layer}."
        matrices = _attention(block, hidden, heads * head_dim, kv_heads * head_dim)
        matrices |= _experts(block, count, hidden, inner)
        tensors |= matrices
        # Every matrix has a bias, one for each row.
        tensors |= {name.replace(".weight", ".bias"): dims[:-1] for name, dims in matrices.items()}
        tensors |= _norms(block, hidden, "attn_norm", "post_attention_norm")
        tensors |= _norms(block, heads, "attn_sinks")
    return FamilyShape(
        "gpt-oss",
        vocabulary,
        _fields(
            layers, hidden, 1e-5, 150_000.0,
            feed_forward_length=inner,
            attention__head_count=heads,
            attention__head_count_kv=kv_heads,
            attention__key_length=head_dim,
            attention__value_length=head_dim,
            attention__sliding_window=window,
            rope__dimension_count=head_dim,
            rope__scaling__type="yarn",
            rope__scaling__factor=32.0,
            rope__scaling__original_context_length=4096,
            expert_count=count,
            expert_used_count=used,
            expert_feed_forward_length=inner,
        ),
        tensors,
        kv_reads=tuple(
            (0 if layer % 2 else window, 2 * kv_heads * head_dim) for layer in range(layers)
        ),
        experts=(count, used),
        file_type="mxfp4",
    )  # fmt: skip


FAMILY_SHAPES = {
    "qwen3.5-0.8b": _qwen35(
        layers=24, hidden=1024, heads=8, kv_heads=2, value_heads=16, inner=3584
    ),
    "qwen3.5-4b": _qwen35(layers=32, hidden=2560, heads=16, kv_heads=4, value_heads=32, inner=9216),
    "lfm2-1.2b": _lfm2(16, (2, 5, 8, 10, 12, 14), inner=8192),
    "gemma3-1b": _gemma3_1b(),
    "gemma4-e2b": _gemma4_e2b(),
    "olmoe-7b-a1b": _olmoe(),
    "lfm2-8b-a1b": _lfm2(24, (2, 6, 10, 14, 18, 21), inner=7168, experts=True),
    "gpt-oss-6-layers": _gpt_oss(),
}
