"""Which host of a cluster runs which task and keeps which copies (`statelib.placement` decides it).

Begin with `round`.
"""
