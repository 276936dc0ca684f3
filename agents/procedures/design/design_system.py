"""`design_system`: lists tokens as `style_designer` does; its detectors compare them."""

from agents.procedures.design.style_designer import run

__all__ = ["run"]
