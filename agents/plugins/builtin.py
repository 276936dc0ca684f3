"""The plugin of what comes with Pravāha."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from agents.detectors.audit import DETECTORS as AUDIT
from agents.detectors.design import DETECTORS as DESIGN
from agents.detectors.detector import Detector
from agents.detectors.security import DETECTORS as SECURITY
from agents.detectors.text import DETECTORS as TEXT
from agents.guardrails.builtin import RECOGNIZERS, RecognizerFactory
from agents.memory.tool import memory_tool
from agents.outputs.base import Output, output_models
from agents.plugins.hooks import API_VERSION, hookimpl
from agents.procedures.packaged import packaged_procedures
from agents.procedures.procedure import Procedure
from agents.procedures.reducers import REDUCERS, Reducer
from agents.specs.packaged import FOLDERS
from agents.tools.builtin import TOOLS
from agents.tools.tool import Tool

_AGENTS = Path(__file__).parent.parent

pravaha_api_version = API_VERSION


@hookimpl
def pravaha_detectors() -> Iterable[Detector]:
    """All built-in detectors."""
    return (*AUDIT, *SECURITY, *DESIGN, *TEXT)


@hookimpl
def pravaha_tools() -> Iterable[Tool]:
    """All built-in tools."""
    return (*TOOLS, memory_tool())


@hookimpl
def pravaha_guardrails() -> Mapping[str, RecognizerFactory]:
    """All built-in recognizers."""
    return RECOGNIZERS


@hookimpl
def pravaha_outputs() -> Iterable[type[Output]]:
    """The output models defined in the modules of `agents.outputs`."""
    return output_models().values()


@hookimpl
def pravaha_procedures() -> Mapping[str, Procedure]:
    """All built-in procedures."""
    return packaged_procedures()


@hookimpl
def pravaha_reducers() -> Mapping[str, Reducer]:
    """All built-in reducers."""
    return REDUCERS


@hookimpl
def pravaha_agent_folders() -> Iterable[Path]:
    """The folders of the packaged agents."""
    return FOLDERS


@hookimpl
def pravaha_pipeline_folders() -> Iterable[Path]:
    """The folder of the built-in pipelines."""
    return [_AGENTS / "pipelines" / "builtin"]
