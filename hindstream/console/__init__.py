"""What a person reads in a terminal: numbers, tables, progress. `numbers` is used by reports as well."""
