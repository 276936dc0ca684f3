"""The full-screen Textual interface: thin widgets over pure functions of a snapshot."""
