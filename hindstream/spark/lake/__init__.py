"""Files of a lake become topic archives: in this process where they are few, on Spark where they are many.

Begin with `ingest`; what is done is in `statelib.ingest`.
"""
