"""Opens the guardrails of chats and of the server from settings."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.guardrails.conversation_guard import ConversationGuard
    from agents.guardrails.guardrails import Classifier, Guardrails
    from agents.guardrails.model_judge import Decide
    from app.settings.settings import Settings
    from engine.clients.engine_client import EngineClient
    from engine.embedding.embedder import Embedder


def open_guardrails(settings: "Settings") -> "Guardrails":
    """Tier 1 by the settings' policy, with the recognizers of the plugins."""
    from agents.guardrails.guardrails import Guardrails
    from agents.plugins.guardrails import load_guardrails

    return Guardrails(settings.guardrail_policy(), recognizers=load_guardrails())


def open_moderation(
    settings: "Settings", embedder: "Embedder | None", judge: "Decide | None" = None
) -> "Guardrails":
    """All tiers that are available, for texts that are only to be reported on.

    Args:
        settings: the settings.
        embedder: the classifier's model; None, or one that is not installed, leaves tier 2 out.
        judge: decisions of the served model; None leaves tier 3 out.
    """
    from agents.guardrails.guardrails import Guardrails
    from agents.guardrails.policy import moderation_policy
    from agents.plugins.guardrails import load_guardrails

    return Guardrails(
        moderation_policy(settings.guardrail_policy("redact")),
        open_classifiers(embedder, judge),
        recognizers=load_guardrails(),
    )


def open_classifiers(
    embedder: "Embedder | None", judge: "Decide | None" = None
) -> "list[Classifier]":
    """Tier 2 if its model is installed, and tier 3 if there is a judge."""
    from agents.guardrails.injection_head import InjectionClassifier
    from agents.guardrails.model_judge import ModelJudge

    classifiers: list[Classifier] = []
    if embedder is not None and embedder.installed:
        classifiers.append(InjectionClassifier(embedder))
    if judge is not None:
        classifiers.append(ModelJudge(judge))
    return classifiers


def open_judge(settings: "Settings", client: "EngineClient") -> "Decide | None":
    """Decisions of the client's model, if the settings want them."""
    from agents.model.judge import SessionJudge
    from agents.model.session import ModelSession

    return SessionJudge(ModelSession(client)) if settings.guardrails_judge else None


def open_conversation_guard(settings: "Settings") -> "ConversationGuard":
    """The guard of a session's conversations. It is made on a thread, while the screen opens."""
    from agents.guardrails.conversation_guard import ConversationGuard
    from agents.guardrails.redaction_store import RedactionStore

    pool = ThreadPoolExecutor(1, "pravaha-guardrails")
    guardrails = pool.submit(open_guardrails, settings)
    pool.shutdown(wait=False)
    return ConversationGuard(guardrails.result, RedactionStore(settings.redactions))
