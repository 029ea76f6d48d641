"""What `demo` plays: real commands on a throwaway workspace, one of them killed. Knows no session."""

__all__: list[str] = []
