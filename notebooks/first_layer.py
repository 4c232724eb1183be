"""A first layer: weights, function, coefficients, and back."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import attngeom

    return attngeom, mo


@app.cell
def _(mo):
    mo.md(r"""
    # A first layer

    A lightning layer is a cubic map $\varphi(X) = V X X^\top A X$ with $A = K^\top Q$. This one has $Q = (1,
    2)$, $K = (3, 5)$, $V = (7, 11)$, and is computed over the rational numbers.
    """)
    return


@app.cell
def _(attngeom):
    architecture = attngeom.Architecture((2, 1), 1, tokens=2)
    tensors = {"layers.0.Q": [[1, 2]], "layers.0.K": [[3, 5]], "layers.0.V": [[7, 11]]}
    layer = attngeom.Weights.from_tensors(architecture, tensors, attngeom.QQ)
    layer
    return (layer,)


@app.cell
def _(attngeom, layer):
    output = attngeom.forward(layer, attngeom.QQ.convert([[1, 0], [0, 1]]))
    assert [int(x) for x in output[0]] == [76, 152]
    output
    return (output,)


@app.cell
def _(mo):
    mo.md(r"""
    The coefficients of the cubic map are all that the function is. From them both points of the fiber come
    back: the two ways to call one linear factor the key and the other one the value.
    """)
    return


@app.cell
def _(attngeom, layer):
    answer = attngeom.certify(attngeom.coefficients(layer))
    assert answer.verdict == "realizable" and len(answer.points) == 2
    answer
    return (answer,)


@app.cell
def _(attngeom, layer):
    place = attngeom.inspect(layer)
    assert place.stratum.name == "generic"
    place.plot()
    return


if __name__ == "__main__":
    app.run()
