"""Times the program against plain references on the same machine; `make bench`. Never part of the tests."""
