"""All of storage on a PostgreSQL server, for agents on more than one host (extra `postgres`).

Statements are those of `graph_agent.storage.sqlite`, translated. Only a URL as the database loads any of this.
"""
