"""How the next word of a text is chosen by its scores."""
from sheaf import Float32, Token, sample, top_k_filter, top_p_filter


def choose(scores: Float32["n"], temperature: float, top_k: int, top_p: float) -> Token:
    """The likeliest one, of a temperature of 0; else a draw: of the `top_k` likeliest, and of these of those
    that make up `top_p` of the probability together, at this temperature."""
    assert temperature >= 0, "a temperature is at least 0"
    if temperature == 0:
        return Token(scores.argmax().item())
    return Token(sample(top_p_filter(top_k_filter(scores / temperature, top_k), top_p)).item())


def wait(scores: Float32["n"]) -> None:
    """What comes after is recorded when these are there: other instances go on in between."""
    assert scores.argmax().item() >= 0
