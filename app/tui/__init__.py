"""The full-screen Textual interface: thin widgets that draw pure functions of a snapshot.

`view/` has the pure functions, `widgets/` the Textual widgets, `avatar/` the pixel figure, `styles/` the
stylesheet and `textual_workarounds/` the code that depends on one version of Textual.
"""
