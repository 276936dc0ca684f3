"""`SessionTools`: what the model is offered in each mode, and what a person chooses."""

import pytest

from agents.api.errors import InvalidTask
from agents.tool_loop.opening import ToolChoices
from app.acp.session_tools import SessionTools


class FakeChatTools:
    """Tools of which `shell` cannot be used in the mode `deny`."""

    def __init__(self, problem=""):
        self.mode, self.chosen, self.problem = "ask", (), problem

    def choices(self):
        if self.problem:
            raise InvalidTask(self.problem)
        refused = {"shell": "It changes things."} if self.mode == "deny" else {}
        return ToolChoices({"read": "reads", "shell": "runs"}, refused, {"ours": ""})

    def choose(self, names):
        if "none" in names:
            raise InvalidTask("There is no tool 'none'.")
        self.chosen = tuple(names)


@pytest.mark.parametrize(
    ("mode", "offered"), [("ask", ("read", "shell", "ours", "theirs")), ("deny", ("read",))]
)
async def test_the_usual_tools_are_offered_as_far_as_the_mode_allows(mode, offered):
    tools = SessionTools(FakeChatTools(), ("read", "shell", "ours", "missing"), ("theirs",))
    assert not await tools.offer(mode)
    assert tools.offered == offered


async def test_a_choice_replaces_the_usual_tools_and_the_clients_servers_until_it_is_undone():
    tools = SessionTools(FakeChatTools(), ("read",), ("theirs",))
    for argument, offered in [
        ("shell, ours", ("shell", "ours")),
        ("", ("shell", "ours")),
        ("off", ()),
        ("on", ("read", "theirs")),
    ]:
        await tools.choose(argument, "ask")
        await tools.offer("ask")
        assert tools.offered == offered


async def test_a_choice_that_is_refused_changes_nothing():
    tools = SessionTools(FakeChatTools(), ("read",))
    with pytest.raises(InvalidTask):
        await tools.choose("none", "ask")
    await tools.offer("ask")
    assert tools.offered == ("read",)


async def test_agents_that_cannot_be_opened_are_said_and_offer_nothing():
    tools = SessionTools(FakeChatTools("No sandbox here."), ("read",))
    assert await tools.offer("ask") == "No sandbox here."
    assert tools.offered == ()
