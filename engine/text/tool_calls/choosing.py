"""The form of a model's calls, by its chat template, and the parser of a form."""

from collections.abc import Mapping
from dataclasses import replace

from engine.api.tools import Tool
from engine.text.answer_parser import AnswerParser
from engine.text.tool_calls.call_parser import CallParser
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.forms.command import COMMAND
from engine.text.tool_calls.forms.deepseek import DEEPSEEK, DEEPSEEK_V4, DEEPSEEK_V32
from engine.text.tool_calls.forms.gemma import FUNCTION_GEMMA, GEMMA4
from engine.text.tool_calls.forms.glm import GLM
from engine.text.tool_calls.forms.harmony import HARMONY
from engine.text.tool_calls.forms.hermes import HERMES
from engine.text.tool_calls.forms.kimi import KIMI
from engine.text.tool_calls.forms.lfm2 import LFM2
from engine.text.tool_calls.forms.listed_json import APRIEL, NEMOTRON
from engine.text.tool_calls.forms.llama import LLAMA_JSON, LLAMA_PYTHON
from engine.text.tool_calls.forms.marked_json import GRANITE, PHI4
from engine.text.tool_calls.forms.minicpm import MINICPM
from engine.text.tool_calls.forms.minimax import MINIMAX
from engine.text.tool_calls.forms.mistral import MISTRAL, MISTRAL_ARGS
from engine.text.tool_calls.forms.olmo import OLMO
from engine.text.tool_calls.forms.qwen_xml import QWEN_XML
from engine.text.tool_calls.forms.seed import SEED
from engine.text.tool_calls.harmony_parser import HarmonyParser

GENERIC = replace(HERMES, name="generic", signs=())
"""The form of templates that render no tools: `tool_messages.with_offer` asks for it."""

_BY_TEMPLATE = (
    HARMONY, GEMMA4, FUNCTION_GEMMA, SEED, MINIMAX, QWEN_XML, GLM, DEEPSEEK, DEEPSEEK_V4, DEEPSEEK_V32, KIMI,
    COMMAND, NEMOTRON, MINICPM, LFM2, PHI4, HERMES, APRIEL, OLMO, GRANITE,
    MISTRAL_ARGS, MISTRAL, LLAMA_PYTHON, LLAMA_JSON,
)  # fmt: skip
"""Forms in the order in which their signs are looked for: the more specific sign first."""

FORMS: Mapping[str, CallForm] = {one.name: one for one in (*_BY_TEMPLATE, GENERIC)}
"""All forms by name."""


def form_of_template(source: str) -> CallForm:
    """The form that a chat template teaches; `generic` for one without any sign of a form."""
    for form in _BY_TEMPLATE:
        if any(sign in source for sign in form.signs):
            return form
    return GENERIC


def chosen_form(name: str, template: str) -> CallForm:
    """The form of this name; with `auto` that of the chat template."""
    chosen = FORMS.get(name)
    return form_of_template(template) if chosen is None else chosen


def new_parser(form: CallForm, tools: Mapping[str, Tool], *, parallel: bool) -> AnswerParser:
    """A parser of one answer in a form; without `parallel`, the answer ends after its first call."""
    if form is HARMONY:
        return HarmonyParser(tools, parallel=parallel)
    return CallParser(form, tools, parallel=parallel)
