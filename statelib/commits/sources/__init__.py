"""The archives that a job reads: whether they are still those that its state rests on.

Begin with `checks`. `schemas` is about fields that came or went, `rollbacks` about records that were taken back below
the job, and `changed_archives` tells a person what other programs have done.
"""
