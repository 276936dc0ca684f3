"""A random model: any token that the mask allows, biased towards those that let a text end."""

import numpy as np

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar

_LIKELY = [b'"', b"}", b"]", b'"}', b'"]', b"0", b"1", b"true", b"null", b"@", b":"]


class RandomWriter:
    """Writes under a grammar, with the real vocabulary and without a model."""

    def __init__(self, compiler, tokenizer, vocab_size):
        self._compiler = compiler
        self._tokenizer = tokenizer
        self._eos = sorted(tokenizer.eos_ids)
        self._likely = np.array(
            [one for one in range(vocab_size) if tokenizer.token_bytes(one) in _LIKELY]
        )

    def write(self, grammar: Grammar, random: np.random.Generator, max_tokens=400):
        """(text, complete); None where the grammar is refused."""
        try:
            matcher = self._compiler.build(grammar).result(60).matcher()
        except InvalidRequest:
            return None
        bits = np.zeros(matcher.mask_words, np.uint32)
        written: list[int] = []
        while len(written) < max_tokens and not (written and matcher.finished):
            matcher.library.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
            assert matcher.check(), matcher.error
            unpacked = np.unpackbits(bits.view(np.uint8), bitorder="little")
            assert unpacked[self._eos].all() == unpacked[self._eos].any() == matcher.accepting
            options = self._likely[unpacked[self._likely] == 1]
            if not len(options) or random.random() < 0.4:
                options = np.flatnonzero(unpacked)
            token = int(random.choice(options))
            assert matcher.consume([token]), matcher.error
            if token in self._eos:
                break
            written.append(token)
        return self._tokenizer.decode(written), matcher.finished
