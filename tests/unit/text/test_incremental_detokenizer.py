from engine.text.incremental_detokenizer import IncrementalDetokenizer
from engine.text.token_bytes import TokenBytes

SPECIAL = 256
SPACE = ord(" ")


def one_byte_tokens():
    """Token i is byte i; 256 is a control token."""
    return TokenBytes(
        lambda i: f"<0x{i:02X}>" if i < 256 else None,
        scheme="sentencepiece",
        literal={SPECIAL: "<|end|>"},
        size=300,
    )


def stream(*, hidden=frozenset(), strip=False):
    return IncrementalDetokenizer(one_byte_tokens(), hidden=hidden, strip_leading_space=strip)


def one_by_one(text, **options):
    detokenizer = stream(**options)
    return [detokenizer.feed([byte]) for byte in text.encode()] + [detokenizer.flush()]


def test_half_a_character_waits():
    assert one_by_one("é€😀") == ["", "é", "", "", "€", "", "", "", "😀", ""]


def test_invalid_bytes_are_replaced_immediately():
    detokenizer = stream()
    assert detokenizer.feed([0xFF, ord("a")]) == "\ufffda"
    assert detokenizer.feed([0xC3]) == ""
    assert detokenizer.feed([ord("b")]) == "\ufffdb"


def test_an_incomplete_character_is_replaced_at_the_end():
    detokenizer = stream()
    assert detokenizer.feed("€".encode()[:2]) == ""
    assert detokenizer.flush() == "\ufffd"
    assert detokenizer.flush() == ""


def test_special_tokens_are_hidden_or_shown():
    assert stream(hidden={SPECIAL}).feed([104, SPECIAL, 105]) == "hi"
    assert stream().feed([104, SPECIAL, 105]) == "h<|end|>i"


def test_a_special_token_does_not_complete_a_character():
    detokenizer = stream(hidden={SPECIAL})
    assert detokenizer.feed([0xC3]) + detokenizer.feed([SPECIAL]) == ""
    assert detokenizer.feed([0xA9]) == "é"


def test_one_leading_space_is_dropped_and_no_more():
    detokenizer = stream(strip=True)
    assert detokenizer.feed([SPACE]) == ""
    assert detokenizer.feed([SPACE, 97]) == " a"
    assert stream(strip=False).feed([SPACE, 97]) == " a"


def test_hidden_tokens_before_the_text_keep_the_strip_pending():
    detokenizer = stream(hidden={SPECIAL}, strip=True)
    assert detokenizer.feed([SPECIAL]) == ""
    assert detokenizer.feed([SPACE, 97]) == "a"


def emitted(text):
    return [part for part in one_by_one(text) if part]


def test_flags_are_not_split():
    assert emitted("🇫🇷🇩🇪!") == ["🇫🇷", "🇩🇪", "!"]


def test_joined_emoji_are_not_split_after_the_joiner():
    assert emitted("👩\u200d💻.") == ["👩", "\u200d💻", "."]


def test_indic_conjuncts_are_not_split_after_the_virama():
    assert emitted("न्य") == ["न", "्य"]


def test_held_text_is_returned_by_flush():
    assert "".join(emitted("न्")) == "न्"
    assert "".join(emitted("🇫")) == "🇫"


def test_long_runs_of_joiners_are_not_held_back():
    text = "\u200d" * 1000
    detokenizer = stream()
    longest = 0
    total = ""
    for byte in text.encode():
        total += detokenizer.feed([byte])
        longest = max(longest, len(text) - len(total))
    assert total + detokenizer.flush() == text
    assert len(total) >= len(text) - 40


def test_ids_without_bytes_are_skipped():
    assert stream().feed([299, 10_000, -1, 97]) == "a"
