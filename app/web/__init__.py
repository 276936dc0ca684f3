"""`pravaha web`: the screen in browser tabs, one process of `pravaha --attach` for each."""
