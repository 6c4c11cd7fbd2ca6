"""DAGs that replay a job slice by slice, and migrate its stores. Begin with `factory`."""
