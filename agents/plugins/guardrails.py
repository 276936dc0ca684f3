"""Guardrails, those of plugins included, without the rest of the registry: for chats and the server."""

import logging
from collections.abc import Mapping
from importlib import metadata

from agents.guardrails.builtin import RECOGNIZERS, RecognizerFactory

_LOG = logging.getLogger(__name__)
_GROUP = "pravaha"


def load_guardrails() -> Mapping[str, RecognizerFactory]:
    """The built-in families and those of the plugins. A plugin that raises is logged and left out.

    Cost: a look at the installed distributions; a plugin's own import if there is one.
    """
    entries = sorted(metadata.entry_points(group=_GROUP), key=lambda entry: entry.name)
    families = dict(RECOGNIZERS)
    for entry in entries:
        try:
            for name, family in _guardrails_of(entry).items():
                families.setdefault(name, family)  # as in the registry, a name cannot be replaced
        except Exception:  # a plugin's code: anything may be raised
            _LOG.warning(
                "the guardrails of the plugin %s cannot be used", entry.name, exc_info=True
            )
    return families


def _guardrails_of(entry: metadata.EntryPoint) -> dict[str, RecognizerFactory]:
    """What a plugin registers; nothing if it is written for another version of the interface."""
    import pluggy

    from agents.plugins.hooks import API_VERSION, GROUP, Hooks

    plugin = entry.load()
    if getattr(plugin, "pravaha_api_version", None) != API_VERSION:
        return {}
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    manager.register(plugin, entry.name)
    found = manager.hook.pravaha_guardrails()
    return {name: family for part in found for name, family in part.items()}
