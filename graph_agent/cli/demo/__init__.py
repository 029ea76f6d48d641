"""The demo: real commands on a throwaway workspace, one of them killed."""

__all__: list[str] = []
