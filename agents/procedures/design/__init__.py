"""Procedures of the design agents."""

from collections.abc import Mapping

from agents.procedures.design.makers import (
    build_component,
    build_prototype,
    design_layout,
    design_ui,
)
from agents.procedures.design.reviewers import list_tokens, score_design
from agents.procedures.procedure import Procedure

PROCEDURES: Mapping[str, Procedure] = {
    "ui_designer": design_ui,
    "component_builder": build_component,
    "layout_designer": design_layout,
    "style_designer": list_tokens,
    "design_critic": score_design,
    "prototype_builder": build_prototype,
    "design_system": list_tokens,
}
