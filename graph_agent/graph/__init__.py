"""The state machine: five nodes over a typed state, joined by one table of edges."""
