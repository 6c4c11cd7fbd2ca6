"""How kernels, the hot loops over flat arrays, are compiled and cached. The kernels are where they are used.

Begin with `compiled`.
"""
