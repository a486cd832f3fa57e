"""How sure a median is."""


def interval(values):
    """Of the median, 95 %, by order statistics; of few values, all of them."""
    values = sorted(values)
    n = len(values)
    low = max(0, int(n / 2 - 0.98 * n**0.5))
    return values[low], values[n - 1 - low]
