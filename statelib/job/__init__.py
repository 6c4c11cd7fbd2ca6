"""A job: a topology with its name, topics and hand-over, loaded from the user's file.

Begin with `job`.
"""
