"""A commit's records reach the readers: sinks are Delta tables, and each commit adds to them exactly once.

Begin with `publish`. `republish` puts back what others took out of a table, `lost_plans` makes a plan anew whose run's
folder is gone, and `topic_writers` says which job writes a topic.
"""
