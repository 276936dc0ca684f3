"""Procedures of the security agents."""

from collections.abc import Mapping

from agents.procedures.procedure import Procedure

PROCEDURES: Mapping[str, Procedure] = {}
