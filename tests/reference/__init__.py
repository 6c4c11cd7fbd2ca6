"""Models of operators: a few plain lines each, record by record, which property tests compare with."""
