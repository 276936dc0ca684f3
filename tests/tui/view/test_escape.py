import itertools

from app.tui.view.escape import EscapeState, Rung, escape_rung

FIELDS = ("popup", "maximised", "selection", "queued", "generating", "prompting")


def test_the_first_that_applies_is_undone_in_every_combination():
    for values in itertools.product((False, True), repeat=len(FIELDS)):
        rung = escape_rung(EscapeState(**dict(zip(FIELDS, values, strict=True))))
        expected = list(Rung)[values.index(True)] if any(values) else Rung.NOTHING
        assert rung is expected
