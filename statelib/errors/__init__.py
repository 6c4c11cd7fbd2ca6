"""What is raised, by what the user should do, and the words of messages.

Begin with `kinds`.
"""
