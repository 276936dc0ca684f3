"""Typed errors of the cluster. Each message is one sentence that says what was wrong and what to do."""

from engine.api.errors import PravahaError


class AgentError(PravahaError):
    """Base of the cluster's errors."""


class UnknownAgent(AgentError):
    """No agent, pipeline, detector or tool has the given name."""


class InvalidSpec(AgentError):
    """A specification file is wrong: unknown field, unknown tool, role card too long."""


class InvalidTask(AgentError):
    """A task cannot be run: no such file, a value out of range, an input missing."""


class BudgetExhausted(AgentError):
    """A reservation exceeds what is left of a run's budget; the run ends with its partial result."""


class PermissionDenied(AgentError):
    """A tool call was denied by its permission, by an approver, or because nobody answered."""


class Cancelled(AgentError):
    """The run was cancelled."""


class ModelFailure(AgentError):
    """The model could not answer: none is loaded, the engine refused the request or stopped."""
