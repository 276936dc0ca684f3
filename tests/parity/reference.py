"""transformers in fp32: the oracle of the parity tests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedModel

from tests.parity.stepper import Run

BATCH_TOKENS = 1024
"""Tokens in a forward pass of several sequences; they take 200 MB of logits of the demo model."""

_TOP_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_GEMMA3_BLOCK_NAMES = {
    "ffn_norm": "pre_feedforward_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
"""Where they differ from `_BLOCK_NAMES`."""
_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def model_from_gguf(path: Path, rope: Mapping[str, object] | None = None) -> PreTrainedModel:
    """The model of a GGUF file, dequantised to fp32 by ggml's own package.

    Args:
        path: a llama (or Mistral), qwen2, qwen3 or gemma3 file.
        rope: transformers' `rope_parameters`; None for those that the metadata name.
    """
    reader = gguf.GGUFReader(str(path))
    architecture = str(reader.fields["general.architecture"].contents())

    def field(name: str, default: object = None) -> Any:
        found = reader.fields.get(f"{architecture}.{name}")
        return default if found is None else found.contents()

    tensors = {
        tensor.name: np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        for tensor in reader.tensors
        if tensor.name != "rope_freqs.weight"
    }
    if architecture == "gemma3":
        return _gemma3(field, tensors)
    heads = {"attn_q": field("attention.head_count"), "attn_k": field("attention.head_count_kv")}
    state = {}
    for name, values in tensors.items():
        part = name.split(".")[-2]
        if architecture == "llama" and part in heads:
            values = _unpermute(values, heads[part])
        state[_checkpoint_name(name)] = torch.from_numpy(values)
    tied = "output.weight" not in tensors
    if tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    window = field("attention.sliding_window")
    hidden = field("embedding_length")
    config = CONFIG_MAPPING["mistral" if window else architecture](
        vocab_size=len(tensors["token_embd.weight"]),
        hidden_size=hidden,
        intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"),
        num_attention_heads=heads["attn_q"],
        num_key_value_heads=heads["attn_k"],
        head_dim=field("attention.key_length", hidden // heads["attn_q"]),
        max_position_embeddings=field("context_length"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"),
        rope_parameters=_rope_parameters(field) if rope is None else rope,
        tie_word_embeddings=tied,
        **({"sliding_window": window} if window else {}),
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(state)
    return model.eval()


def _gemma3(
    field: Callable[..., Any], tensors: Mapping[str, NDArray[np.float32]]
) -> PreTrainedModel:
    """Gemma 3: every sixth layer sees all tokens; the file's norms have the 1 that checkpoints lack."""
    state = {
        _checkpoint_name(name, _BLOCK_NAMES | _GEMMA3_BLOCK_NAMES): torch.from_numpy(
            values - 1 if "norm" in name else values
        )
        for name, values in tensors.items()
    }
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    head_dim = field("attention.key_length")
    config = CONFIG_MAPPING["gemma3_text"](
        vocab_size=len(tensors["token_embd.weight"]),
        hidden_size=field("embedding_length"),
        intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"),
        num_attention_heads=field("attention.head_count"),
        num_key_value_heads=field("attention.head_count_kv"),
        head_dim=head_dim,
        query_pre_attn_scalar=head_dim,
        max_position_embeddings=field("context_length"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"),
        sliding_window=field("attention.sliding_window"),
        layer_types=[
            "full_attention" if layer % 6 == 5 else "sliding_attention"
            for layer in range(field("block_count"))
        ],
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": field("rope.freq_base")},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
        tie_word_embeddings=True,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(state)
    return model.eval()


def _checkpoint_name(name: str, block_names: Mapping[str, str] = _BLOCK_NAMES) -> str:
    """The name in a checkpoint of a tensor of a GGUF file."""
    *block, part, suffix = name.split(".")
    if not block:
        return f"{_TOP_NAMES[part]}.{suffix}"
    return f"model.layers.{block[1]}.{block_names[part]}.{suffix}"


def _rope_parameters(field: Callable[..., Any]) -> dict[str, object]:
    parameters: dict[str, object] = {
        "rope_type": field("rope.scaling.type", "default"),
        "rope_theta": float(field("rope.freq_base")),
    }
    if parameters["rope_type"] != "default":
        parameters["factor"] = float(field("rope.scaling.factor"))
    if parameters["rope_type"] == "yarn":
        original = field("rope.scaling.original_context_length")
        parameters["original_max_position_embeddings"] = original
    return parameters


def _unpermute(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo the row order that llama GGUF files have for pairs (2i, 2i + 1) to rotate together."""
    pairs = values.shape[0] // heads // 2
    return values.reshape(heads, pairs, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def logits(model: PreTrainedModel, ids: Sequence[int]) -> NDArray[np.float32]:
    """[len(ids), vocab] float32."""
    (rows,) = batched_logits(model, [ids])
    return rows


def batched_logits(
    model: PreTrainedModel, sequences: Sequence[Sequence[int]]
) -> Iterator[NDArray[np.float32]]:
    """[len(ids), vocab] float32 of each sequence; a forward pass takes several if they are short.

    Padding follows the tokens of a sequence, so that causal attention never reads it.
    """
    count = max(1, BATCH_TOKENS // max(map(len, sequences), default=1))
    for start in range(0, len(sequences), count):
        group = sequences[start : start + count]
        longest = max(map(len, group))
        padded = [[*ids, *[0] * (longest - len(ids))] for ids in group]
        with torch.no_grad():
            batch = model(torch.tensor(padded)).logits.numpy()
        for ids, rows in zip(group, batch, strict=True):
            yield rows[: len(ids)]


def answer_logits(
    model: PreTrainedModel, prompt: Sequence[int], answer: Sequence[int]
) -> NDArray[np.float32]:
    """[len(answer), vocab]: what the model predicts before each token of the answer.

    An answer is the model's own greedy one if and only if each token is the argmax here; this takes
    one forward pass where generating it would take one a token.
    """
    return logits(model, [*prompt, *answer[:-1]])[len(prompt) - 1 :]


def top_logprob_error(model: PreTrainedModel, run: Run) -> float:
    """The largest difference between a logprob that the run reports (`Run.top`) and the model's."""
    assert run.tokens[: len(run.forced)] == list(run.forced)
    exact = torch.log_softmax(torch.from_numpy(answer_logits(model, run.prompt, run.tokens)), -1)
    errors = [
        logprob - float(row[token])
        for top, row in zip(run.top, exact, strict=True)
        for token, logprob in top
    ]
    return float(np.abs(errors).max())
