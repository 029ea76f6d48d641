"""The terminal: reads arguments, shows events, asks the person. Knows nothing of graph, model or storage."""
