"""The command line: a thin layer over `hindstream.spark`, `hindstream.airflow` and `statelib`.

`main` has the commands with their options, and those of a group (``hindstream state ...``) are in a module
``*_commands``. What a command does and prints is in the module of its name, imported when it is called.

Begin with `main`.
"""
