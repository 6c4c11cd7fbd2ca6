"""What is raised, by what the user should do; the words of messages; the points at which tests inject faults.

Begin with `kinds`.
"""
