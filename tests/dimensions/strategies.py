"""Random small architectures of every kind, with all the edge cases of sizes."""

from hypothesis import strategies as st

from attngeom.network import Architecture


@st.composite
def architectures(draw, max_heads=3, kinds=("lightning", "softmax", "sigmoid"), max_layers=4, widening=True):
    layers = draw(st.integers(1, max_layers))
    largest = 6 if layers < 3 else 4
    width = st.integers(1, largest)
    residual = draw(st.booleans()) and draw(st.booleans())
    if residual:
        widths = (draw(width),) * (layers + 1)
    else:
        widths = tuple(draw(width) for _ in range(layers + 1))
    heads = draw(st.integers(1, max_heads))
    if heads > 1 and not residual and not widening:
        widths = (*sorted(widths[:-1], reverse=True), widths[-1])
    value_width = draw(st.integers(1, 4)) if heads > 1 or draw(st.integers(0, 3)) == 0 else None
    return Architecture(
        widths,
        tuple(draw(st.integers(1, 6)) for _ in range(layers)),
        tokens=draw(st.integers(1, 4)),
        kind=draw(st.sampled_from(kinds)),
        heads=heads,
        value_width=value_width,
        residual=residual,
        causal=draw(st.booleans()) and draw(st.booleans()),
    )
