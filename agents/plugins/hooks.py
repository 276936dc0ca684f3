"""Hook specifications of the entry-point group `pravaha`. The built-in parts register by the same hooks."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pluggy

from agents.detectors.detector import Detector
from agents.guardrails.builtin import RecognizerFactory
from agents.outputs.base import Output
from agents.procedures.procedure import Procedure
from agents.procedures.reducers import Reducer
from agents.tools.tool import Tool

GROUP = "pravaha"
API_VERSION = 1

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


class Hooks:
    """The hooks. A plugin implements any of them, and sets `pravaha_api_version` to `API_VERSION`."""

    @hookspec
    def pravaha_detectors(self) -> Iterable[Detector]:
        """Detectors; their names must be new."""
        raise NotImplementedError

    @hookspec
    def pravaha_tools(self) -> Iterable[Tool]:
        """Tools; their names must be new."""
        raise NotImplementedError

    @hookspec
    def pravaha_guardrails(self) -> Mapping[str, RecognizerFactory]:
        """Families of recognizers by name, each made for a policy; their names must be new."""
        raise NotImplementedError

    @hookspec
    def pravaha_outputs(self) -> Iterable[type[Output]]:
        """Output models, named by their class."""
        raise NotImplementedError

    @hookspec
    def pravaha_procedures(self) -> Mapping[str, Procedure]:
        """Procedures by the key of their agent."""
        raise NotImplementedError

    @hookspec
    def pravaha_reducers(self) -> Mapping[str, Reducer]:
        """Reducers of pipelines by name; their names must be new."""
        raise NotImplementedError

    @hookspec
    def pravaha_agent_folders(self) -> Iterable[Path]:
        """Folders of agent specifications (`*.md`)."""
        raise NotImplementedError

    @hookspec
    def pravaha_pipeline_folders(self) -> Iterable[Path]:
        """Folders of pipelines (`*.yaml`)."""
        raise NotImplementedError
