"""Stores by their descriptions: how they are shown, exported, imported and restored without the code of the job.

Begin with `description`.
"""
