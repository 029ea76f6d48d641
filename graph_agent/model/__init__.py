"""What stands behind the chat-model port: an endpoint, or the offline mode. Knows no graph and no tool."""
