"""Documents: what is kept as JSON beside the data, each with a format version.

Begin with `document`.
"""
