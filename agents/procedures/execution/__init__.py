"""Procedures of the execution agents."""

from collections.abc import Mapping

from agents.procedures.execution.classifier import run_classifier
from agents.procedures.execution.coder import run_coder
from agents.procedures.execution.critic import run_critic
from agents.procedures.execution.debugger import run_debugger
from agents.procedures.execution.ensemble import run_ensemble
from agents.procedures.execution.expander import run_expander
from agents.procedures.execution.extractor import run_extractor
from agents.procedures.execution.judge import run_judge
from agents.procedures.execution.memory import run_memory
from agents.procedures.execution.merger import run_merger
from agents.procedures.execution.narrator import run_narrator
from agents.procedures.execution.planner import run_planner
from agents.procedures.execution.reasoning import run_reasoning
from agents.procedures.execution.refiner import run_refiner
from agents.procedures.execution.researcher import run_researcher
from agents.procedures.execution.router import run_router
from agents.procedures.execution.summarizer import run_summarizer
from agents.procedures.execution.tool import run_tool
from agents.procedures.execution.translator import run_translator
from agents.procedures.execution.validator import run_validator
from agents.procedures.procedure import Procedure

PROCEDURES: Mapping[str, Procedure] = {
    "planner": run_planner,
    "researcher": run_researcher,
    "coder": run_coder,
    "debugger": run_debugger,
    "reasoning": run_reasoning,
    "critic": run_critic,
    "refiner": run_refiner,
    "summarizer": run_summarizer,
    "narrator": run_narrator,
    "expander": run_expander,
    "extractor": run_extractor,
    "classifier": run_classifier,
    "router": run_router,
    "translator": run_translator,
    "ensemble": run_ensemble,
    "merger": run_merger,
    "judge": run_judge,
    "memory": run_memory,
    "tool": run_tool,
    "validator": run_validator,
}
