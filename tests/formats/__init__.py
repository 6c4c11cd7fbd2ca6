"""Every durable format: what was written in a former version is read, what a newer Hindstream has written is refused.

``data/warehouse-<n>.tar.gz`` is a warehouse that the Hindstream of that version of the documents has left behind, after
the first of two days of `tests.commits.toy`: ``python -m tests.formats <file>`` makes the one of this version, before
the version is raised.
"""
