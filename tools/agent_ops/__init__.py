"""Tools for the agent's own work: memory, plan, questions, sub-agents, skills."""
