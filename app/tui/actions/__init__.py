"""What the keys do, by group: `perform('tree', 'prune')` in the key table calls `TreeActions.prune`.

A group asks the screen through `ChatScreen` and gets everything else in its constructor; `ActionGroups`
composes them.
"""
