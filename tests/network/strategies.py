"""Hypothesis strategies for small networks."""

from hypothesis import strategies as st

from attngeom.network import Architecture


@st.composite
def architectures(draw, max_layers=3, max_width=4, kinds=("lightning",), max_tokens=4):
    layers = draw(st.integers(1, max_layers))
    residual = draw(st.booleans())
    if residual:
        widths = (draw(st.integers(1, max_width)),) * (layers + 1)
    else:
        widths = tuple(draw(st.integers(1, max_width)) for _ in range(layers + 1))
    heads = draw(st.integers(1, 3))
    value_width = draw(st.integers(1, 3)) if heads > 1 or draw(st.booleans()) else None
    return Architecture(
        widths,
        tuple(draw(st.integers(1, max_width)) for _ in range(layers)),
        tokens=draw(st.integers(1, max_tokens)),
        kind=draw(st.sampled_from(kinds)),
        heads=heads,
        value_width=value_width,
        residual=residual,
        causal=draw(st.booleans()),
    )
