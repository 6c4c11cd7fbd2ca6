"""The phases of a run, in order: plan, replay, audit, commit, publish, maintain, report.

Each is a function ``run(job, settings, run_id)``.

Begin with `pipeline`, which calls them all.
"""
