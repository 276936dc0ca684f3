"""Reports: results of runs in the formats of other tools."""
