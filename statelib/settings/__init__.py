"""Settings: typed, validated once, each with where its value came from.

Begin with `statelib.settings.settings`.
"""
