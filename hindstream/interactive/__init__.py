"""Jobs run from Python, in a script or a notebook: `hindstream.run` and `hindstream.backfill`, and what they give.

Begin with `run`.
"""
