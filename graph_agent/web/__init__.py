"""The web inbox and inspector: reads threads, shows them live, and records the answers of a person in a browser.

An add-on package: only the command `graph-agent web` imports it, and its libraries come with the extra `web`.
"""
