"""Running a project's own tests: in which environment, by which command, with what outcome."""
