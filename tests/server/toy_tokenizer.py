"""A real `Tokenizer` over bytes: 256 byte tokens, then ChatML's control tokens."""

from collections.abc import Sequence

import tokenizers
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from engine.text.chat_template import ChatTemplate
from engine.text.token_bytes import byte_alphabet
from engine.text.tokenizer import Tokenizer

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, IM_START, IM_END = 256, 257, 258
VOCAB_SIZE = 259


def byte_tokenizer(
    *,
    template: str | None = None,
    add_bos: bool = False,
    normalizer: normalizers.Normalizer | None = None,
    controls: Sequence[str] = (),
    **control_options: bool,
) -> Tokenizer:
    """Token id = byte value, so tests can write ids by hand.

    Args:
        template: chat template; None is ChatML.
        add_bos: see `Tokenizer`.
        normalizer: rewrites text before it is encoded.
        controls: further control tokens.
        control_options: `AddedToken`'s, for the control tokens.
    """
    letters = {byte: letter for letter, byte in byte_alphabet().items()}
    encoder = tokenizers.Tokenizer(
        models.BPE(vocab={letters[byte]: byte for byte in range(256)}, merges=[])
    )
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if normalizer is not None:
        encoder.normalizer = normalizer
    options = {"normalized": False} | control_options
    encoder.add_tokens(
        [AddedToken(text, special=True, **options) for text in (*CONTROLS, *controls)]
    )
    return Tokenizer(
        encoder,
        scheme="byte-level",
        vocab_size=VOCAB_SIZE + len(controls),
        bos_id=END_OF_TEXT,
        eos_ids=frozenset({END_OF_TEXT, IM_END}),
        add_bos=add_bos,
        strip_leading_space=False,
        chat_template=ChatTemplate(template, tokens={}),
        fingerprint="bytes-1",
    )
