"""What a person reads in a terminal: numbers, tables, progress."""
