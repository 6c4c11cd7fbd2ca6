"""What nobody needs any more is deleted, and what somebody needs is looked at.

Begin with `maintain`. `leftovers` finds files that no document names, `verify` reads all that is named, and
`changelog_lag` sets for how long a changelog keeps what was overwritten.
"""
