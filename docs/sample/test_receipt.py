"""Run with `python3 -m unittest -v`."""

import unittest

from receipt import fmt


class ReceiptTest(unittest.TestCase):
    def test_a_receipt_ends_with_the_total(self) -> None:
        assert fmt(["bread 1 2.20"], 2.2) == "bread 1 2.20\ntotal 2.20"

    def test_every_total_below_20000_has_two_decimals(self) -> None:
        for cents in range(2_000_000):
            assert fmt([], cents / 100)[-3] == "."


if __name__ == "__main__":
    unittest.main()
