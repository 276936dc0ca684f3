"""Opens the guardrails of chats and of the server from settings."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.guardrails.conversation_guard import ConversationGuard
    from agents.guardrails.guardrails import Guardrails
    from app.settings.settings import Settings


def open_guardrails(settings: "Settings") -> "Guardrails":
    """Tier 1 by the settings' policy, with the recognizers of the plugins."""
    from agents.guardrails.guardrails import Guardrails
    from agents.plugins.guardrails import load_guardrails

    return Guardrails(settings.guardrail_policy(), recognizers=load_guardrails())


def open_conversation_guard(settings: "Settings") -> "ConversationGuard":
    """The guard of a session's conversations. It is made on a thread, while the screen opens."""
    from agents.guardrails.conversation_guard import ConversationGuard
    from agents.guardrails.redaction_store import RedactionStore

    pool = ThreadPoolExecutor(1, "pravaha-guardrails")
    guardrails = pool.submit(open_guardrails, settings)
    pool.shutdown(wait=False)
    return ConversationGuard(guardrails.result, RedactionStore(settings.redactions))
