"""`statelib.comparison` on Spark, for sinks of hundreds of millions of records.

Begin with `matches`. Tasks read chunks of both sides and hash their rows, a shuffle brings rows of a key together, and
what differs comes to the driver, which goes on as without Spark.
"""
