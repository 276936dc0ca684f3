"""Small complete vocabularies: every byte, a few merges, ChatML's control tokens."""

from engine.text.token_bytes import byte_alphabet

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6


def byte_level() -> tuple[list[str], list[str], list[int]]:
    """Tokens, merges and token types of a byte-level BPE vocabulary."""
    merges = ["Ġ t", "h e", "Ġt he", "i n", "l l", "Ã ©"]
    letters = list(byte_alphabet())
    made = [merge.replace(" ", "") for merge in merges]
    tokens = [*CONTROLS, *letters, *made]
    types = [CONTROL] * len(CONTROLS) + [NORMAL] * (len(letters) + len(made))
    return tokens, merges, types


def byte_level_fields(pre: str = "gpt-2", *, size: int = 0) -> dict[str, object]:
    """The GGUF metadata of `byte_level`, with tokens that are not used up to `size`."""
    tokens, merges, types = byte_level()
    unused = range(len(tokens), size)
    tokens += [f"<unused{index}>" for index in unused]
    types += [UNUSED for _ in unused]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": CHATML,
    }


def sentencepiece_fields() -> dict[str, object]:
    """The GGUF metadata of a SentencePiece BPE vocabulary with byte fallback."""
    words = ["▁", "h", "e", "l", "o", "w", "r", "d", "▁h", "el", "lo", "▁w", "or", "ld"]
    words += ["ello", "▁hello", "orld", "▁world", "▁▁"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(words)
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(words))]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def base_fields() -> dict[str, object]:
    """The GGUF metadata of `byte_level` as a base model has it: no chat template, and no marks of turns."""
    fields = byte_level_fields()
    tokens = [
        f"<unused{at}>" if one in CONTROLS[1:] else one
        for at, one in enumerate(fields["tokenizer.ggml.tokens"])
    ]
    return fields | {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.ggml.bos_token_id": None,
        "tokenizer.chat_template": None,
    }
