"""What the read-only commands print: tables and JSON made from what the inspector found."""
