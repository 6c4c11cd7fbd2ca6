"""Files of a lake become topic archives: in this process where they are few, on Spark where they are many.

Queries that are sources are run by `queries`, for a load or a look (`query_results`).

Begin with `ingest`; what is done is in `statelib.ingest`.
"""
