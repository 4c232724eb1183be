"""For the learning theorist: the learning coefficient at regular and singular points."""

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
    # The learning coefficient

    $\operatorname{vol}\{K \le \varepsilon\} \sim \varepsilon^{\lambda} (\log 1/\varepsilon)^{m-1}$: λ is half
    the dimension at a regular point and smaller at a singular one.
    """)
    return


@app.cell
def _(attngeom, folder):
    from fractions import Fraction

    names = ("layer", "singular", "boundary")
    answers = {name: attngeom.learning_coefficient(attngeom.read_weights(folder / f"{name}.json")) for name in names}
    found = [Fraction(answer.to_json()["lambda"]) for answer in answers.values()]
    assert found == [Fraction(13, 2), Fraction(5), Fraction(9, 2)]
    answers["boundary"]
    return (answers,)


@app.cell
def _(attngeom, folder):
    attngeom.inspect(attngeom.read_weights(folder / "boundary.json")).plot()
    return


@app.cell
def _(mo):
    mo.md(r"""
    Gradient flow conserves numbers of the weights; here they are, with the proof that there are no others.
    """)
    return


@app.cell
def _(attngeom):
    from attngeom.learning.laws import conserved_quantities

    laws = conserved_quantities(attngeom.Architecture((3, 3), 3))
    assert laws.to_json()["is_complete"]
    laws
    return


if __name__ == "__main__":
    app.run()
