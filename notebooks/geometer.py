"""For the geometer: from a layer to its dimension and its ideal."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import attngeom

    return attngeom, mo


@app.cell
def _():
    import tempfile
    from pathlib import Path

    from attngeom.demo import write_demo

    folder = write_demo(Path(tempfile.mkdtemp()))
    return (folder,)


@app.cell
def _(mo):
    mo.md(r"""
    # From a layer to its ideal

    18 parameters, 13 dimensions: what is lost is symmetry.
    """)
    return


@app.cell
def _(attngeom, folder):
    layer = attngeom.read_weights(folder / "layer.json")
    answer = attngeom.dimension(layer.architecture)
    assert (answer.dimension, answer.is_proven) == (13, True)
    answer
    return (answer,)


@app.cell
def _(answer):
    answer.plot()
    return


@app.cell
def _(mo):
    mo.md(r"""
    All equations up to degree 4 for one output row, $d = 3$, $a = 2$, as representations of $GL_3 \times GL_3$.
    """)
    return


@app.cell
def _(attngeom):
    from attngeom.equations import Variety

    ideal = attngeom.implicitize(Variety(3, 2), 4)
    assert [row.minimal_generators for row in ideal.degrees] == [0, 0, 30, 90]
    ideal
    return (ideal,)


@app.cell
def _(ideal):
    ideal.plot()
    return


@app.cell
def _(ideal, mo):
    mo.vstack([module for row in ideal.degrees for module in row.modules])
    return


if __name__ == "__main__":
    app.run()
