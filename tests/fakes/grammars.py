"""Reference grammar masks: the whole answer is replayed for each token."""

import numpy as np

from engine.grammar.compiler import GrammarCompiler
from engine.grammar.matcher import mask_words
from tests.fakes.toy_tokenizer import VOCAB_SIZE, ToyTokenizer

NUMBERS = r"[1-9][0-9]{2,5}( [a-z]{1,4})*"


def toy_compiler(tokenizer=None, vocab_size=VOCAB_SIZE, **options):
    """A compiler that tests need not close: its process ends with the test process."""
    return GrammarCompiler(tokenizer or ToyTokenizer(), vocab_size, **options)


def compiled(compiler, grammar):
    return compiler.build(grammar).result(60)


def bits_of(matcher):
    """[words] uint32: the mask of the next token."""
    bits = np.zeros(matcher.mask_words, np.uint32)
    matcher.library.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
    assert matcher.check(), matcher.error
    return bits


def allowed(matcher):
    """Token ids that may come next."""
    return np.flatnonzero(np.unpackbits(bits_of(matcher).view(np.uint8), bitorder="little"))


def replayed_mask(grammar_compiled):
    """For `oracle`: the mask after an answer, computed from the grammar's start each time."""

    def mask(answer):
        matcher = grammar_compiled.matcher()
        assert matcher.consume(answer)
        assert matcher.mask_words == mask_words(VOCAB_SIZE)
        return None if answer and matcher.finished else bits_of(matcher)

    return mask
