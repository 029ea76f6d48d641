"""Tasks that run without a person: the queue, the worker that runs it, and a git worktree for each."""
