"""The local state of an application, in files as Kafka Streams writes them: it starts on them without a restore.

Begin with `directory`. What lies where is in `layout`.
"""
