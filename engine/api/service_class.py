"""`ServiceClass`: the kind of traffic a request belongs to; the scheduler serves higher classes first."""

from typing import Literal, get_args

ServiceClass = Literal["interactive", "agent", "batch"]
"""`interactive`: a person waits for the first token. `agent`: a step of an agent. `batch`: no hurry."""

SERVICE_CLASSES: tuple[ServiceClass, ...] = get_args(ServiceClass)
"""Highest first; a class is stored as its index, its *rank*."""
