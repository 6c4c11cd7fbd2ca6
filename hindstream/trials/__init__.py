"""Trials: another version of a job replays its history as a fork, is compared with the job, and is dropped.

Begin with `wanted`: what is tried, checked before anything is replayed. `forks` makes the forks and drops them whatever
happens, `replay` replays what they lack, and `differences` says in words how the versions differ. Which slices these
are is planned by `statelib.commits.versions.trials`.
"""
