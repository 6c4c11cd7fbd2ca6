"""Work on tasks as Spark stages: a row describes a task's work, and is never a record. Begin with `works`."""
