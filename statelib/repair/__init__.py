"""Repairs: what a job has written is corrected by records that say what is different, and its state by a fork's.

Begin with `repair`. Somebody has forked the job at a commit before the fault, and let a corrected topology replay what
the job has replayed since. `corrections` turns the difference of both into records for the job's sinks.
"""
