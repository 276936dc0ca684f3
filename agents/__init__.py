"""Layer 5, the agent cluster: 51 agents built on detectors, between the engine and the application."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.cluster import Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    """Import the cluster on use: front ends that run no agent do not load it."""
    if name == "Cluster":
        from agents.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
