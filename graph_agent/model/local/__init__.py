"""A model in this process, from a GGUF file."""
