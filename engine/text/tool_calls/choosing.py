"""The form of a model's calls, by its chat template."""

from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.forms.hermes import HERMES

FORMS = (HERMES,)
"""All forms; the first one whose sign a template has is its form."""


def form_of_template(source: str) -> CallForm:
    """The form that a chat template teaches; `hermes` for one that renders no calls."""
    for form in FORMS:
        if any(sign in source for sign in form.signs):
            return form
    return HERMES
