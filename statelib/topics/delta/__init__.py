"""A topic's Delta log, as it is read: which files count, and what applications have committed last.

Begin with `log`; `file_index` lists the files, `transactions` the positions.
"""
