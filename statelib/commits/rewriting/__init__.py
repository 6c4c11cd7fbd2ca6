"""Files of archives merged into fewer, by metadata that readers follow in one step.

Begin with `rewrite`. `topic_files` and `source_files` say what may be merged in a job's own
topics and in those that it reads, `compaction` what a changelog may lose; `rewrite_log` is the document that decides.
"""
