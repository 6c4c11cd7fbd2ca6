"""The command line: a thin layer over `hindstream.spark`, `hindstream.airflow` and `statelib`.

`main` lists the commands; each room has those of one heading of the help. Their options are in ``commands`` or, of a
group such as ``hindstream state ...``, in ``*_commands``. What a command does and prints is in the module of its name,
imported when it is called.

Begin with `main`.
"""
