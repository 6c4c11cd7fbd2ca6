"""Which rows of a large table can fail a check at all: Great Expectations looks at those alone. Begin with `screen`."""
