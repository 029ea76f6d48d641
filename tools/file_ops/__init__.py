"""Tools on files and folders."""
