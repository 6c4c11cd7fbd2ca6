"""A phase whose driver runs elsewhere: submitted to a cluster by ``spark-submit``, found again, followed to its end.

Begin with `follow`; `driver` is what is submitted.
"""
