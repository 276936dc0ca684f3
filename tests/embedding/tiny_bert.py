"""Tiny random BERT encoders in the file layout of published ones."""

import json

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz",
         *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"), "hello", "world"]  # fmt: skip


def save_tiny_bert(directory, *, prefix="", dtype=torch.float32, **config):
    """Save a model and a WordPiece tokenizer; the model, in fp32, as the reference."""
    torch.manual_seed(len(directory.name))
    settings = {
        "vocab_size": len(WORDS), "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": 48,
    } | config  # fmt: skip
    model = BertModel(BertConfig(**settings, attn_implementation="eager")).eval()
    with torch.no_grad():
        for (
            parameter
        ) in model.parameters():  # the library's initial weights are too small to show errors
            parameter.copy_((parameter + 0.2 * torch.randn_like(parameter)).to(dtype).float())
    tensors = {prefix + name: one.to(dtype) for name, one in model.state_dict().items()}
    save_file(tensors, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(
        model.config.to_dict() | {"architectures": ["BertModel"]}, default=str))  # fmt: skip
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(directory / "tokenizer.json"))
    return model


def reference(model, ids):
    """Mean-pooled and normalised, one text at a time, in double precision after the last layer."""
    with torch.no_grad():
        states = model(torch.tensor([ids])).last_hidden_state[0].double()
    mean = states.mean(0)
    return (mean / mean.norm()).numpy()
