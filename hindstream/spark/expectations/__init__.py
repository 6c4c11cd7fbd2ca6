"""What a job expects of its sinks: checks of the columns that staged records have, without Great Expectations itself.

Begin with `checks`.
"""
