"""The forms in which words are compared."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.store.word_forms import folded_form, joined_words, plain_form, search_form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("ﬁle ﬂow oﬃce", "file flow office"),  # ligatures
        ("soft\u00adware", "software"),
        ("infor\u00ad\n  mation", "information"),
        ("zero\u200bwidth\u200d\u2060\ufeff", "zerowidth"),
        ("\u202ehidden\u202c", "hidden"),
        ("ＫＸ－４４７１", "KX-4471"),  # full width
        ("KX\u20114471 KX\u20104471 KX\u22124471", "KX-4471 KX-4471 KX-4471"),
        ("1\u201324 hours", "1-24 hours"),
        ("don\u2019t don\u02bct don\u00b4t", "don't don't don't"),
        ("\u201cquoted\u201d \u201equoted\u201c \u00abquoted\u00bb", '"quoted" "quoted" "quoted"'),
        ("plan\u00b9 m\u00b2 H\u2082O", "plan^1 m^2 H2O"),
        ("cafe\u0301", "café"),
        ("Acme™ №5 5℃ 1½", "Acme   No 5 5 °C  1 1/2 "),
        ("a\u00a0b\u202fc\u3000d", "a b c d"),
        ("ﻣﺤﻤﺪ", "محمد"),  # Arabic presentation forms
        ("ـكتابـ", "كتاب"),
        ("٤٤٧١ ४४७१", "4471 4471"),
        ("ｺｰﾋｰ ｶﾞ", "コーヒー ガ"),
        ("Ⅳ 𝐁𝐨𝐥𝐝", "IV Bold"),
        ("plain ASCII^2", "plain ASCII^2"),
    ],
)
def test_one_spelling_for_each_character(text: str, form: str):
    assert plain_form(text) == form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"), ("Ärzte", "A\u0308RZTE"), ("Łódź", "lodz"), ("œuvre", "OEUVRE"),
        ("Ågård", "agard"), ("ISPARTA", "ısparta"), ("İzmir", "izmir"), ("Σοφός", "σοφοσ"),
        ("كِتَاب", "كتاب"), ("שָׁלוֹם", "שלום"), ("ёлка", "елка"), ("Đurić", "duric"),
    ],
)  # fmt: skip
def test_case_and_accents_are_folded(one: str, other: str):
    assert folded_form(one) == folded_form(other)


def test_letters_that_only_look_like_an_accented_one_stay():
    assert folded_form("й") == "й"
    assert folded_form("が") == "が"
    assert folded_form("हिन्दी") == "हिन्दी"


def test_compounds_are_joined_as_a_whole_and_in_neighbours():
    assert {word: parts for parts, word in joined_words("kx-4471-b and m^2")} == {
        "kx4471b": ["kx", "4471", "b"],
        "kx4471": ["kx", "4471"],
        "4471b": ["4471", "b"],
        "m2": ["m", "2"],
    }
    assert search_form("The e-mail, the infor-\nmation") == (
        "the e-mail, the infor-\nmation\nemail information"
    )
    assert search_form("a - b -- c, |---|---|, a-") == "a - b -- c, |---|---|, a-"
    assert "\n" not in search_form("-".join("abcdefghijkl"))


@given(st.text())
def test_forms_of_any_text_are_stable_and_equal_for_its_normal_forms(text: str):
    folded = folded_form(text)
    assert folded_form(folded) == folded_form(folded_form(folded))
    for form in ("NFC", "NFD"):
        again = unicodedata.normalize(form, text)
        assert search_form(again).split() == search_form(unicodedata.normalize("NFC", text)).split()
    search_form(text)
