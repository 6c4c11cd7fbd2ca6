"""Values of rows: their types in an archive, the times that they tell, and the fields that options name.

Begin with `types`.
"""
