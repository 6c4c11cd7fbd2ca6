"""Jobs from Python, in a script or a notebook: `hindstream.run`, `hindstream.backfill`, `hindstream.read`.

Begin with `run`.
"""
