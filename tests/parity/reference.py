"""transformers in fp32: the oracle of the parity tests."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

BATCH = 4
"""Sequences in a forward pass; each takes 50 MB of logits per 250 tokens of the demo model."""

_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def llama_from_gguf(path: Path) -> LlamaForCausalLM:
    """The llama model of a GGUF file with tied embeddings, dequantised to fp32 by ggml's own package."""
    reader = gguf.GGUFReader(str(path))

    def field(name: str) -> float:
        return reader.fields[f"llama.{name}"].contents()

    config = LlamaConfig(
        vocab_size=int(field("vocab_size")),
        hidden_size=int(field("embedding_length")),
        intermediate_size=int(field("feed_forward_length")),
        num_hidden_layers=int(field("block_count")),
        num_attention_heads=int(field("attention.head_count")),
        num_key_value_heads=int(field("attention.head_count_kv")),
        max_position_embeddings=int(field("context_length")),
        rms_norm_eps=float(field("attention.layer_norm_rms_epsilon")),
        rope_parameters={"rope_type": "default", "rope_theta": float(field("rope.freq_base"))},
        tie_word_embeddings=True,
    )
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    state = {}
    for tensor in reader.tensors:
        values = np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        parts = tensor.name.split(".")
        if parts[0] == "blk":
            if parts[2] in heads:
                values = _unpermute(values, heads[parts[2]])
            name = f"model.layers.{parts[1]}.{_NAMES[parts[2]]}.weight"
        else:
            name = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}[parts[0]]
            name += ".weight"
        state[name] = torch.from_numpy(values)
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = LlamaForCausalLM(config)
    model.load_state_dict(state)
    return model.eval()


def _unpermute(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo the row order that llama GGUF files have for pairs (2i, 2i + 1) to rotate together."""
    rows, cols = values.shape
    pairs = rows // heads // 2
    return values.reshape(heads, pairs, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def logits(model: PreTrainedModel, ids: Sequence[int]) -> NDArray[np.float32]:
    """[len(ids), vocab] float32."""
    (rows,) = batched_logits(model, [ids])
    return rows


def batched_logits(
    model: PreTrainedModel, sequences: Sequence[Sequence[int]]
) -> Iterator[NDArray[np.float32]]:
    """[len(ids), vocab] float32 of each sequence, `BATCH` sequences to a forward pass.

    Padding follows the tokens of a sequence, so that causal attention never reads it.
    """
    for start in range(0, len(sequences), BATCH):
        group = sequences[start : start + BATCH]
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
