"""One step of the engine: execute the plan, apply the result, write tokens, calibrate."""
