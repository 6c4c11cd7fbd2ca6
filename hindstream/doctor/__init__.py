"""``hindstream doctor``: what is wrong here, and the command that mends it.

Begin with `examine`, which asks for one check after the other; each other file looks at one thing.
"""
