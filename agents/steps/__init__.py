"""Steps: constrained decisions and ReAct steps of a model over tools."""
