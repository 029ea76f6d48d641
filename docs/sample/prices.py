"""Print a receipt for the lines of basket.txt: name, quantity, price of one."""

from pathlib import Path

from receipt import fmt


def total(lines: list[str]) -> float:
    """What the whole basket costs."""
    prices = [float(line.split()[2]) for line in lines]
    return sum(prices)


if __name__ == "__main__":
    basket = Path(__file__).with_name("basket.txt").read_text().splitlines()
    print(fmt(basket, total(basket)))
