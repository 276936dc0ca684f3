import pytest

from engine.text.chat_template import CHATML, ChatTemplate
from engine.text.message_forms import has_system_role
from tests.unit.text.test_chat_template import IGNORES_SYSTEM, MISTRAL, NO_SYSTEM


@pytest.mark.parametrize(
    ("source", "has_one"),
    [(CHATML, True), (NO_SYSTEM, False), (IGNORES_SYSTEM, False), ("{{ nope.x }}", False)],
)
def test_a_template_has_a_system_role_if_it_writes_one(source, has_one):
    assert has_system_role(ChatTemplate(source, tokens={}).render) is has_one


def test_a_template_that_writes_both_as_one_has_none():
    """A default system prompt may be left out for it; it stands at the beginning of the user's message."""
    assert has_system_role(ChatTemplate(MISTRAL, tokens={}).render) is False
