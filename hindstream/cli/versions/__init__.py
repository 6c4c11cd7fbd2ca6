"""Versions of a job: forked, tried, compared, promoted, dropped. Begin with `fork_commands`."""
