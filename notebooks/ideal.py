"""The ideal: equations, families and what is complete."""

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
    # The ideal of attention layers

    The families of equations, counted.
    """)
    return


@app.cell
def _():
    from attngeom.equations import Variety, families

    variety = Variety(3, 3)
    {family.name: (family.degree, family.count) for family in families(variety)}
    return families, variety


@app.cell
def _(variety):
    from attngeom.equations import find_family

    quartic = find_family(variety, "sylvester-resultant").polynomial(0)
    assert quartic.degree == 4
    quartic
    return find_family, quartic


@app.cell
def _(mo):
    mo.md(r"""
    It vanishes on every layer, and not everywhere: that is checked symbolically at the generic layer.
    """)
    return


@app.cell
def _(find_family, variety):
    from attngeom.equations.family import vanishes_identically

    vanishes = vanishes_identically(find_family(variety, "sylvester-resultant"), 0)
    assert vanishes
    vanishes
    return


@app.cell
def _(mo):
    mo.md(r"""
    How many equations there are in each degree, and how many are new; the list is complete by a theorem.
    """)
    return


@app.cell
def _(attngeom, variety):
    summary = attngeom.implicitize(variety, 5, complete=True)
    assert [row.minimal_generators for row in summary.degrees] == [0, 0, 20, 90, 0]
    assert summary.completeness.standing == "theorem"
    summary.plot()
    return


if __name__ == "__main__":
    app.run()
