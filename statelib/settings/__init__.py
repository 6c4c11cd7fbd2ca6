"""Settings: typed, validated once, each with where its value came from.

Begin with `settings`.
"""
