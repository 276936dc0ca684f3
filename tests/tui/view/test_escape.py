import itertools

from app.tui.view.escape import EscapeEffect, EscapeState, escape_effect

FIELDS = (
    "popup",
    "in_past",
    "maximised",
    "selection",
    "editing",
    "reading",
    "queued",
    "generating",
    "prompting",
)


def test_the_first_that_applies_is_undone_in_every_combination():
    for values in itertools.product((False, True), repeat=len(FIELDS)):
        effect = escape_effect(EscapeState(**dict(zip(FIELDS, values, strict=True))))
        expected = list(EscapeEffect)[values.index(True)] if any(values) else EscapeEffect.NOTHING
        assert effect is expected
