"""A job: a topology, its name, its topics and what it hands over; loaded from the user's file.

Begin with `statelib.job.job`.
"""
