"""Sequence breakers, compiled for a vocabulary, against their definition by text."""

import numpy as np
import pytest

from engine.text.sequence_breakers import MAX_BREAKER_TAIL, BreakerCompiler

PIECES = [b"a", b"b", b"c", b"ab", b"bc", b"cab", b"\n", b".\n\n", b"", b"\xc3", b"\xa9", b"xa"]


class Pieces:
    """A vocabulary whose encoding takes the longest piece first."""

    def __init__(self) -> None:
        self.reads = 0

    def token_bytes(self, token_id):
        self.reads += 1
        return PIECES[token_id]

    def encode(self, text, *, special=False):
        left, ids = text.encode(), []
        while left:
            best = max((p for p in PIECES if p and left.startswith(p)), key=len)
            ids.append(PIECES.index(best))
            left = left[len(best) :]
        return ids


def patterns(*breakers):
    """Tail to heads, of the compiled breakers."""
    compiled = BreakerCompiler(Pieces(), len(PIECES)).compile(breakers)
    bits = np.unpackbits(compiled.heads.view(np.uint8), axis=1, bitorder="little")
    return {
        tuple(one for one in tail.tolist() if one >= 0): set(np.flatnonzero(heads).tolist())
        for tail, heads in zip(compiled.tails, bits, strict=True)
    }


def test_a_token_that_contains_the_string_is_a_breaker_by_itself():
    assert patterns("\n") == {(): {6, 7}}
    assert patterns("a") == {(): {0, 3, 5, 11}}


def test_a_token_that_ends_with_its_beginning_needs_the_tokens_of_the_rest():
    # "ab" is in the tokens ab and cab; a token that ends with "a" must be followed by b.
    assert patterns("ab") == {(): {3, 5}, (1,): {0, 11}}
    # Of several tokenizations of the rest, only the tokenizer's own counts, as in llama.cpp.
    assert patterns("abc") == {(4,): {0, 11}, (2,): {3, 5}}


def test_several_strings_share_patterns():
    assert patterns("ab", "\n", "cb") == {(): {3, 5, 6, 7}, (1,): {0, 2, 4, 11}}


def test_a_character_is_not_split():
    assert patterns("é") == {}


def test_no_strings_and_unknown_strings_have_no_patterns():
    assert patterns() == patterns("?") == {}


def test_long_tails_are_cut():
    (tail,) = [tail for tail in patterns("a" + "c" * 30) if len(tail) == MAX_BREAKER_TAIL]
    assert tail == (2,) * MAX_BREAKER_TAIL


def test_the_vocabulary_is_read_once_and_results_are_shared():
    vocabulary = Pieces()
    compiler = BreakerCompiler(vocabulary, len(PIECES))
    first = compiler.compile(("a", "\n"))
    assert compiler.compile(("a", "\n")) is first
    compiler.compile(("b",))
    assert vocabulary.reads == len(PIECES)


@pytest.mark.parametrize("size", [1, 31, 32, 33])
def test_heads_have_a_bit_for_every_token(size):
    class Same(Pieces):
        def token_bytes(self, token_id):
            return b"a"

    compiled = BreakerCompiler(Same(), size).compile(("a",))
    assert compiled.heads.shape == (1, -(-size // 32))
    assert np.bitwise_count(compiled.heads).sum() == size
