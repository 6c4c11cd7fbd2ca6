"""Great Expectations: run quietly, with the same answer on every engine, and its Data Docs. Begin with `validator`."""
