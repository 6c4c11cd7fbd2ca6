"""Stores by their descriptions: how they are shown, exported, imported and restored without the code of the job.

Families of operators use it in their modules `snapshot` and `changelog`; `statelib.snapshots` and `statelib.changelog`
use these. Begin with `description`.
"""
