"""A process that has imported everything and forks itself for each command: the second of imports is spent once.

``hindstream session start`` starts it. From then on `client` hands each command of this environment to it; `server`
forks a `child` that becomes the command, with its terminal, directory and environment. The two talk in `messages`
through a socket that only this user can open. Without a session, or with one that would not do the very same, a
command runs in its own process. Begin with `client`.
"""
