from engine.text.detokenizer import Detokenizer
from tests.fakes.toy_tokenizer import EOS, ToyTokenizer
from tests.server.toy_tokenizer import IM_END, IM_START, byte_tokenizer


def test_a_detokenizer_stops_at_a_stop_token():
    tokenizer = ToyTokenizer()
    detokenizer = Detokenizer(tokenizer.incremental_detokenizer(), stop_ids=frozenset({EOS}))
    assert detokenizer.feed([*tokenizer.encode("ab"), EOS]) == "ab"
    assert detokenizer.flush() == ""


def test_a_detokenizer_flushes_an_incomplete_character():
    tokenizer = ToyTokenizer()
    detokenizer = Detokenizer(tokenizer.incremental_detokenizer(), stop_ids=frozenset())
    assert detokenizer.feed(tokenizer.encode("aé")[:2]) == "a"
    assert detokenizer.flush() == "\ufffd"


def streamed(ids, stops, *, stop_ids=(), include_stop=False, groups=1):
    """The text and whether a stop string was found, with `groups` tokens in a call."""
    tokenizer = byte_tokenizer()
    detokenizer = Detokenizer(
        tokenizer.incremental_detokenizer(),
        stop_ids=frozenset(stop_ids),
        stops=stops,
        include_stop=include_stop,
    )
    text = ""
    for begin in range(0, len(ids), groups):
        text += detokenizer.feed(ids[begin : begin + groups])
        if detokenizer.stopped:
            break
    return text + detokenizer.flush(), detokenizer.stopped


def test_a_stop_string_may_spell_a_control_token():
    ids = [*b"one", IM_START, *b"two"]
    for groups in (1, 2, 9):
        assert streamed(ids, ("<|im_start|>",), groups=groups) == ("one", True)
    assert streamed(ids, ("<|im_end|>",)) == ("onetwo", False)


def test_a_stop_string_may_contain_control_tokens():
    ids = [*b"one", IM_START, IM_END, *b" two"]
    assert streamed(ids, ("ne<|im_start|>",)) == ("o", True)
    assert streamed(ids, ("<|im_start|><|im_end|> t",)) == ("one", True)
    assert streamed(ids, ("e<|im_start|><|im_end|> two",)) == ("on", True)
    assert streamed(ids, ("e<|im_start|> two",)) == ("one two", False)


def test_a_control_token_does_not_hide_a_stop_string_around_it():
    assert streamed([*b"STO", IM_START, *b"P!"], ("STOP", "<|im_end|>")) == ("", True)


def test_the_ordinary_text_of_a_control_token_is_a_stop_string_too():
    assert streamed([*b"one<|im_start|>two"], ("<|im_start|>",)) == ("one", True)


def test_text_that_may_precede_a_control_token_is_held_back_and_returned():
    tokenizer = byte_tokenizer()
    detokenizer = Detokenizer(
        tokenizer.incremental_detokenizer(), stop_ids=frozenset(), stops=("b<|im_start|>c",)
    )
    fed = [detokenizer.feed([token]) for token in (*b"ab", IM_START, *b"dx")]
    assert fed == ["a", "", "", "bd", "x"]


def test_an_included_stop_string_is_spelled_out():
    ids = [*b"one", IM_START, *b"two"]
    assert streamed(ids, ("e<|im_start|>",), include_stop=True) == ("one<|im_start|>", True)


def test_a_stop_token_may_complete_a_stop_string():
    ids = [*b"one", IM_END]
    assert streamed(ids, ("ne<|im_end|>",), stop_ids={IM_END}) == ("o", True)
    assert streamed(ids, ("x<|im_end|>",), stop_ids={IM_END}) == ("one", False)


def test_a_stop_string_may_begin_with_a_control_token_before_a_fork():
    tokenizer = byte_tokenizer()
    detokenizer = Detokenizer(
        tokenizer.incremental_detokenizer(), stop_ids=frozenset(), stops=("a<|im_start|>b",)
    )
    detokenizer.resume_after([*b"xa", IM_START])
    assert detokenizer.feed([*b"b", *b"c"]) == ""
    assert detokenizer.stopped
