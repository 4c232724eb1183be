"""Check certificates of traced programs: the part of attngeom_check.py for claims of the kind "network".

It is loaded by attngeom_check.py, beside which it lies, takes its strict readers, named points and ranks from there,
and needs nothing else. Written from the definitions in docs/explanation/trust.md. A program is a list of nodes
[operation, earlier nodes, shape, data]; the claim is that its functions form a set of a dimension D near generic
weights. Lower bound: a minor of the Jacobian that is not 0 mod p. Upper bound: fields that are shown to keep every
output, by the rules of derivatives, or the coefficients of outputs that are polynomials in the inputs.
"""

import math, re
from fractions import Fraction
from itertools import combinations, product
from operator import mul

from attngeom_check import COUNT, WORD_PRIME, ZERO, Invalid, Point, Unknown
from attngeom_check import afford, array, choice, integer, keys, rank, rank_mod, rational, require

CHAIN = (4068479, 2034239, 1017119, 508559, 254279, 127139, 5779)
TRIES, MAX_PRODUCTS, MAX_TERMS = 4096, 400_000, 5000
DATA = {"parameter": ("name",), "input": ("name",), "constant": ("entries",), "contract": ("subscripts",)}
DATA |= {"gather": ("index",), "add": ("coefficients",), "inverse": (), "root": (), "formal": ("name",)}
DATA |= {"circle": ("part", "classes", "multiples", "angles"), "pattern": ("kind",)}
FUNCTIONS = ("exp", "log", "gauss", "sin", "cos")
DERIVED = (*FUNCTIONS, "inverse", "root")
SPARE, MAX_FREE = 40, 600
TAKES = {"contract": (1, 2), "add": range(1, 10**6), "gather": range(1, 10**6)}
TAKES |= dict.fromkeys(("inverse", "root", "formal", "pattern"), (1,))

# Reading: every entry of every node becomes a cell (kind, data), one operation on the numbers in earlier cells.
def contraction(text, shapes, shape):
    """For each entry of einsum(text, ...) its terms, as places in two operands; in a second that is not there all 0."""
    found = re.fullmatch(r"([A-Za-z]*)(?:,([A-Za-z]*))?->([A-Za-z]*)", text) if type(text) is str else None
    require(found and len(text) < 200, "subscripts of one or two operands are required")
    words, out = [word for word in found.groups()[:2] if word is not None], found[3]
    require([len(word) for word in words] == [len(own) for own in shapes], "one letter for each axis is required")
    pairs = [pair for word, own in zip(words, shapes) for pair in zip(word, own)]
    sizes = dict(pairs)
    summed = [letter for letter in sizes if letter not in out]
    require(all(len(set(word)) == len(word) for word in (*words, out)), "letters of a word must differ")
    fits = all(sizes[x] == n for x, n in pairs) and set(out) <= set(sizes) and [sizes[x] for x in out] == shape
    require(fits, "the sizes of a contraction do not fit")
    require(len(words) == 1 or all(x in words[0] and x in words[1] for x in summed), "outer sums are not allowed")
    afford(math.prod(sizes.values()) * 1000, "steps for the products of a contraction")
    def places(word, letters):
        strides = [math.prod(sizes[y] for y in word[word.index(x) + 1 :]) if x in word else 0 for x in letters]
        return [sum(map(mul, strides, at)) for at in product(*(range(sizes[x]) for x in letters))]
    first, second = ([places(word, letters) for letters in (out, summed)] for word in [*words, ""][:2])
    return [[(i + k, j + l) for k, l in zip(first[1], second[1])] for i, j in zip(first[0], second[0])]

class Program:
    """Cells: parameter, input (name, place); constant number; sum [(c, a, b), ...] of c·a·b with cells a, b; circle
    (part, class, multiple); order (row, rank, place): is this cell of the row of that rank; else a function of a cell.
    Cell 0 is the number 0, cell 1 the number 1."""
    def __init__(self, record):
        self.record, nodes = record, keys(record, ("format", "version", "nodes", "output"), "program")["nodes"]
        require(record["format"] == "attngeom/program" and type(nodes) is list and nodes, "no program")
        integer(record["version"], 1, 1, "version")
        self.cells, self.leaves = [("constant", ZERO), ("constant", Fraction(1))], {"parameter": {}, "input": {}}
        entries, shapes, depths, self.shapes, self.angles = [], [], [0] * len(nodes), {}, None
        for operation, sources, shape, data in (array(node, 4, "node") for node in nodes):
            keys(data, DATA[choice(operation, DATA, "operation")], "data of a node")
            require(type(sources) is type(shape) is list, "lists of nodes and sizes are required")
            size = math.prod(integer(n, 1, 2**22, "size") for n in shape)
            afford((len(self.cells) + size) * 1000, "steps for the cells of a program")
            given = [integer(k, 0, len(entries) - 1, "node") for k in sources]
            made = self.read(operation, data, shape, size, [shapes[k] for k in given], [entries[k] for k in given])
            if operation != "gather":
                require(len(made) == size, "another shape is required")
                self.cells += made
                made = range(len(self.cells) - size, len(self.cells))
            if operation in self.leaves: self.leaves[operation][data["name"]], self.shapes[data["name"]] = made, shape
            entries.append(made)
            shapes.append(shape)
        # The depth of a node: inside of how many exponentials it stands.
        for place, (operation, sources, _, data) in reversed(list(enumerate(nodes))):
            inner = depths[place] + (operation == "formal" and data["name"] in ("exp", "gauss"))
            for k in sources: depths[k] = max(depths[k], inner)
        self.output, self.levels = entries[integer(record["output"], 0, len(nodes) - 1, "output")], max(depths) + 1
        self.weights = [cell for own in self.leaves["parameter"].values() for cell in own]
        self.needed = {*self.output}
        for cell in reversed(range(len(self.cells))):
            if cell in self.needed: self.needed |= set(arguments(*self.cells[cell]))
        self.kinds = {self.cells[cell][0] for cell in self.needed}
        self.size = sum(len(data) + 1 if kind == "sum" else 1 for kind, data in self.cells)
    def read(self, operation, data, shape, size, shapes, given):
        """The cells of a node; for a gather those of earlier nodes."""
        require(len(given) in TAKES.get(operation, (0,)), "another number of nodes is required")
        if operation in self.leaves:
            name, taken = data["name"], {**self.leaves["parameter"], **self.leaves["input"]}
            require(type(name) is str and name.isprintable() and name not in taken, "leaves have different names")
            return [(operation, (name, k)) for k in range(size)]
        if operation == "constant":
            texts = array(data["entries"], size, "entries")
            require(all(type(x) is str and len(x) < 2000 for x in texts), "entries are short texts")
            return [(operation, rational(x)) for x in texts]
        if operation == "circle":
            part, angles = choice(data["part"], ("cos", "sin"), "part"), data["angles"]
            if angles != self.angles: self.read_angles(angles)
            classes, multiples = (array(data[key], size, key) for key in ("classes", "multiples"))
            for c, m in zip(classes, multiples): integer(c, 0, len(angles) - 1), integer(m, -(2**40), 2**40)
            return [("circle", (part, *pair)) for pair in zip(classes, multiples)]
        if operation == "gather":
            joined = [*(x for own in given for x in own), 0]
            return [joined[integer(k, -1, len(joined) - 2)] for k in array(data["index"], size, "index")]
        if operation == "contract":
            first, second = [*given, [1]][:2]
            table = contraction(data["subscripts"], shapes, shape)
            return [("sum", [(1, first[i], second[j]) for i, j in terms]) for terms in table]
        if operation == "pattern" and choice(data["kind"], ("positive", "order"), "pattern") == "order":
            require(shapes[0] and shape == [*shapes[0], shapes[0][-1]], "another shape is required")
            rows = [tuple(given[0][i : i + n]) for n in shape[-1:] for i in range(0, len(given[0]), n)]
            return [("order", (row, place, k)) for row in rows for place, k in product(range(shape[-1]), repeat=2)]
        require(all(own == shape for own in shapes), "another shape is required")
        if operation == "add":
            factors = [integer(c, -(2**20), 2**20) for c in array(data["coefficients"], len(given), "coefficients")]
            return [("sum", [(c, x, 1) for c, x in zip(factors, own)]) for own in zip(*given)]
        if operation == "formal": operation = choice(data["name"], FUNCTIONS, "function")
        return [("positive" if operation == "pattern" else operation, x) for x in given[0]]

    def read_angles(self, angles):
        """One list for all circle points; no angle is seen to be a small fraction of another one or of pi."""
        require(self.angles is None and type(angles) is list and len(angles) <= 256, "one list of angles is required")
        require(all(type(x) in (int, float) and 0 < abs(x) < 1e300 for x in angles), "angles other than 0 are required")
        self.angles = angles
        for x, y in combinations((math.pi, *angles), 2):
            r, n = abs(x / y), round(2 * abs(x / y))
            parts = [n / 2] * (x == math.pi and 0 < n <= 8192 and n & (n - 1) == 0)
            parts += [float(f if r < 1 else 1 / f) for f in [Fraction(min(r, 1 / r)).limit_denominator(16)] if f]
            require(all(abs(r / z - 1) >= 3e-7 for z in parts), f"the angles {x} and {y} are commensurable")

    def look_at_numbers(self):
        """Exponentials of numbers such as e, alone or in a sum, may be algebraic for all that is known."""
        moves, odd = set(), set()  # What weights or inputs reach; what has a term that is no rational number.
        for cell, (kind, data) in enumerate(self.cells):
            if kind in self.leaves or moves & set(arguments(kind, data)): moves.add(cell)
            if kind in ("exp", "gauss") and data in odd and cell in self.needed:
                raise Unknown(f"{kind} of a number that is not rational may be algebraic")
            terms = [{a, b} for _, a, b in data] if kind == "sum" else [{data}] if kind in ("inverse", "root") else []
            found = any(own & odd and not own & moves - odd for own in terms) or kind == "circle"
            if found or (kind in FUNCTIONS and cell not in moves): odd.add(cell)

def arguments(kind, data):
    """The cells from which a cell is computed."""
    if kind == "sum": return [x for _, a, b in data for x in (a, b)]
    return data[0] if kind == "order" else [data] if type(data) is int else []

# Values mod p and gradients.
class Place:
    """A program at a named point: the values of its cells mod the primes of the chain, None where there are none."""
    def __init__(self, program, record):
        self.record, self.region, self.drawn = record, integer(record["region"], 0, 10**6, "region"), {}
        self.program = program
        self.points = {p: Point(record, p) for p in (*CHAIN, 4097)}
        self.weights = [self.leaf(CHAIN[0], "w0", 0, *program.cells[cell]) for cell in program.weights]
    def leaf(self, p, label, index, kind, place):
        """One residue of a tensor; the index of the k-th input is the first 20 bits and what is above the k-th 20."""
        name, number = place
        if kind == "input":
            k = list(self.program.leaves["input"]).index(name)
            label += f".{(index + (index >> 20 * k if k else 0)) % 2**20}"
        if (p, label, name) not in self.drawn:
            size = len(self.program.leaves[kind][name])
            (self.drawn[p, label, name],) = self.points[p].draw(f"{label}/{name}", 1, size)
        return self.drawn[p, label, name][number]
    def signs(self, index):
        """Exact numbers at the real point (n - 2048)/1024, n mod 4097: 1 where a pattern holds. None stands for what
        is 0 in the whole region: numbers that are multiplied by a pattern that does not hold, and sums of such."""
        numbers, program = [], self.program
        for cell, (kind, data) in enumerate(program.cells if program.kinds & {"positive", "order"} else ()):
            number = None
            if kind in program.leaves:
                n = self.leaf(4097, f"r{self.region}" if kind == "parameter" else "rx", index, kind, data)
                number = Fraction(n - 2048, 1024)
            elif kind == "constant": number = data or None
            elif kind == "sum":
                terms = [c * numbers[a] * numbers[b] for c, a, b in data if None not in (numbers[a], numbers[b])]
                number = sum(terms) if terms else None
            elif kind == "positive":
                require(numbers[data] != 0, "a sign is not that of an open region")
                number = Fraction(1) if numbers[data] is not None and numbers[data] > 0 else None
            elif kind == "order":
                row, place, k = data
                own = [numbers[x] for x in row]
                known = [x for x in own if x is not None] + ([0] if None in own else [])
                require(len(set(known)) == len(known), "an order is not that of an open region")
                number = Fraction(1) if sorted(range(len(row)), key=lambda x: -(own[x] or 0))[place] == k else None
            elif cell in program.needed:
                raise Unknown(f"signs beside {kind} are those of floats; attngeom verify rechecks them")
            numbers.append(number)
        return numbers
    def values(self, sample, lowest=0):
        """All cells, at the deepest level first: exp x = (2^((p - 1)/q))^(x mod q), q the next prime of the chain."""
        signs, values = self.signs(sample[0]), [None] * len(self.program.cells)
        for level, p in reversed(list(enumerate(CHAIN[: self.program.levels]))[lowest:]):
            self.below = below = values
            values = []
            for cell, (kind, data) in enumerate(self.program.cells):
                try: value = self.value(kind, data, level, p, sample[level], values, below)
                except (TypeError, ValueError, IndexError): value = None  # 1/0, or something is missing.
                values.append(value if kind not in ("positive", "order") else int(bool(signs and signs[cell])))
        return values
    def value(self, kind, data, level, p, index, values, below):
        """One operation mod p; an exception where it has no value."""
        if kind == "sum": return sum(c * values[a] * values[b] for c, a, b in data) % p
        if kind in self.program.leaves:
            return self.leaf(p, f"{'w' if kind == 'parameter' else 'x'}{level}", index, kind, data)
        if kind == "constant": return data.numerator * pow(data.denominator, -1, p) % p
        if kind == "circle": return self.circle(level, p, *data)
        if kind == "inverse": return pow(values[data], -1, p)
        if kind == "exp": return pow(2, (p - 1) // CHAIN[level + 1] * below[data] + 0 * values[data], p)
        # Free values: random functions of the residue; the density of gauss needs its argument one level down.
        if kind == "log": return self.random(level, p, kind, values[data]) if values[data] else None
        if kind == "gauss": return self.random(level, p, kind, values[data] + 0 * below[data])
        if kind in ("sin", "cos"):
            x = min(values[data], p - values[data])
            point = self.slope_point(p, self.random(level, p, "circle", x))
            return point[0] if kind == "cos" else 0 if x == 0 else point[1] if x == values[data] else -point[1] % p
        root = pow(values[data], (p + 1) // 4, p) if kind == "root" else None
        return root if root and root * root % p == values[data] else None
    def random(self, level, p, function, x): return self.points[p].draw(f"{level}/{function}/{x}", 1, 1)[0][0]
    def slope_point(self, p, m):
        """The point ((1 - m^2)/(1 + m^2), 2m/(1 + m^2)) of the circle for a residue m."""
        return (1 - m * m) * (scale := pow(1 + m * m, -1, p)) % p, 2 * m * scale % p
    def circle(self, level, p, part, number, multiple):
        """The multiple of the angle of a class."""
        (a, b), x, y = self.slope_point(p, self.random(level, p, "angle", number)), 1, 0
        for bit in bin(abs(multiple))[2:]:
            x, y = (x * x - y * y) % p, 2 * x * y % p
            if bit == "1": x, y = (x * a - y * b) % p, (x * b + y * a) % p
        return x if part == "cos" else y if multiple >= 0 else -y % p
    def gradient(self, sample, output):
        """The gradient mod p of one output, or (-1) of a random form on those that exist, by the chain rule."""
        program, p, values = self.program, CHAIN[0], self.values(sample)
        below = self.below
        moved, (form,) = [0] * len(values), self.points[p].draw(f"c{sample[0]}", 1, len(program.output))
        chosen = [k for k, cell in enumerate(program.output) if values[cell] is not None and output in (-1, k)]
        require(chosen, "an output does not exist at its sample")
        for k in chosen: moved[program.output[k]] += form[k] if output < 0 else 1
        for cell in reversed(range(len(values))):
            (kind, data), g = program.cells[cell], moved[cell] % p
            for c, a, b in data if g and kind == "sum" else ():
                moved[a] += g * c * values[b]
                moved[b] += g * c * values[a]
            if g and kind in DERIVED: moved[data] += g * self.slope(kind, values[data], values[cell], below[data])
        return [moved[cell] % p for cell in program.weights]
    def slope(self, kind, x, y, below):
        """The derivative mod p of y = f(x): that of gauss is kappa exp(-x^2/2)."""
        p, q = CHAIN[:2]
        if kind in ("exp", "inverse"): return y if kind == "exp" else -y * y
        if kind in ("root", "log"): return pow(2 * y if kind == "root" else x, -1, p)
        density = pow(2, (p - 1) // q * (below**2 * (q - 1) // 2 % q), p) if kind == "gauss" else None
        if kind == "gauss": return self.random(0, p, "kappa", 0) * density
        other = self.value("sin" if kind == "cos" else "cos", 0, 0, p, 0, [x], [None])
        return -other if kind == "cos" else other
    def has_free_roots(self, record):
        """Each root exists at some samples and not at others, where those before it exist: it is no function of the
        weights times a square, so that its sign is free. Roots of weights alone are looked at at other weights."""
        cells, levels = self.program.cells, self.program.levels
        # Roots of one cell are equal: one of them is looked at.
        roots = sorted({cells[cell][1]: cell for cell in self.program.needed if cells[cell][0] == "root"}.values())
        moving = {cell for own in self.program.leaves["input"].values() for cell in own}
        for cell, (kind, data) in enumerate(cells): moving |= {cell} if moving & set(arguments(kind, data)) else set()
        def elsewhere(k):
            return Place(self.program, {**record, "point": f"{record['point']}/root{k}"}).values([0] * levels)
        groups = ((False, elsewhere), (True, lambda k: self.values([k] * levels)))
        for own, draw in (([cell for cell in roots if (cell in moving) == side], draw) for side, draw in groups):
            cases = set(product(own, (True, False)))
            for values in map(draw, range(TRIES if own else 0)):
                if not cases: break
                for cell in own:
                    # That the root of 0 is missing says nothing: squares have zeros.
                    if values[cells[cell][1]]: cases.discard((cell, values[cell] is not None))
                    if values[cell] is None: break
            if cases: return False
        return True

# Symmetries for all weights and inputs. Monomials: sorted tuples of (atom, exponent). Polynomials: {monomial: number}.
def multiply(m, n):
    powers = dict(m)
    for atom, e in n: powers[atom] = powers.get(atom, 0) + e
    return tuple(sorted(x for x in powers.items() if x[1]))

def power(m, k): return tuple((atom, e * k) for atom, e in m)
def add_term(total, m, c):
    total[m] = total.get(m, 0) + c
    if not total[m]: del total[m]

def divisors(m):
    """The monomials of up to four atoms that divide m, each with its whole exponent but for one."""
    for part in (part for size in range(5) for part in combinations(m, size)):
        yield part
        for k, (atom, e) in enumerate(part):
            if abs(e) > 1: yield (*part[:k], (atom, 1 if e > 0 else -1), *part[k + 1 :])

class Symbols:
    """Every cell as a number times a monomial in atoms: leaves, patterns, functions of (number, monomial), and sums of
    several terms ((monomial, number), ...). ``start`` gives the values of weights that are fixed or written anew."""
    def __init__(self, program, start=lambda symbols: {}):
        self.program, self.atoms, self.numbers, self.sums, self.work = program, [], {}, {}, 0
        self.residues, self.point = [], Point(COUNT, WORD_PRIME)
        self.weights = [self.atom(*program.cells[cell]) for cell in program.weights]
        given, self.values = start(self), []
        for cell, (kind, data) in enumerate(program.cells):
            used = cell in program.needed or cell < 2
            self.values.append(given[cell] if cell in given else self.value(cell, kind, data) if used else None)
    def value(self, cell, kind, data):
        if kind == "constant": return data, ()
        if kind == "sum":
            total = {}
            for c, (x, m), (y, n) in ((c, self.values[a], self.values[b]) for c, a, b in data):
                if c * x * y: add_term(total, multiply(m, n), c * x * y)
            return self.reduce(total)
        if kind in (*self.program.leaves, "circle", "positive", "order"):
            return Fraction(1), ((self.atom(kind, cell if kind in ("positive", "order") else data), 1),)
        x, m = self.values[data]
        if kind == "inverse" and not x: raise Unknown("an output contains 1/0: it exists nowhere")
        if kind == "inverse": return 1 / x, power(m, -1)
        sign = -1 if kind == "exp" and x < 0 else 1
        return Fraction(1), ((self.atom(kind, (sign * x, m)), sign),)
    def atom(self, kind, data):
        """The number of an atom; that of a sum is entered under each of its monomials."""
        if (kind, data) not in self.numbers:
            self.numbers[kind, data] = len(self.atoms)
            for m, _ in data if kind == "sum" else (): self.sums.setdefault(m, []).append(len(self.atoms))
            drawn = self.point.draw(f"atom/{len(self.atoms)}", 1, 1)[0][0]
            self.residues.append(self.residue(data) if kind == "sum" else drawn)
            self.atoms.append((kind, data))
        return self.numbers[kind, data]
    def residue(self, terms):
        """A polynomial mod p at random values of atoms that are no sums: only where it is 0, expanding is tried."""
        total, p = 0, WORD_PRIME
        for m, c in terms:
            powers = [pow(self.residues[a], e, p) if self.residues[a] else 0 for a, e in m]
            total += c.numerator * pow(c.denominator, p - 2, p) * math.prod(powers)
        return total % p
    def reduce(self, total):
        """A polynomial as a number times a monomial: powers that all terms share, and an atom if there are several."""
        if not total: return ZERO, ()
        spans = {a: [dict(m).get(a, 0) for m in total] for a, _ in next(iter(total))}
        common = tuple(sorted((a, min(e, key=abs)) for a, e in spans.items() if min(e) > 0 or max(e) < 0))
        terms = sorted((multiply(m, power(common, -1)), c) for m, c in total.items())
        lead = terms[0][1]
        if len(terms) == 1: return lead, common
        return lead, multiply(common, ((self.atom("sum", tuple((m, c / lead) for m, c in terms)), 1),))
    def spend(self, products, total):
        self.work += products
        if self.work > MAX_PRODUCTS or len(total) > MAX_TERMS: raise Unknown("a proof takes too many products")
    def change(self, x, m, changes, total):
        """total += d(x m), from the changes of atoms."""
        for atom, e in m:
            rest = multiply(m, ((atom, -1),))
            for n, c in changes.get(atom, {}).items(): add_term(total, multiply(rest, n), x * e * c)
            self.spend(len(changes.get(atom, ())), total)
        return total
    def keeps(self, field):
        """Whether the change of every output along a field comes out as 0; False says only that it was not shown."""
        changes, self.work = {}, 0
        for (moved, source), c in field.items():
            own = changes.setdefault(self.weights[moved], {})
            add_term(own, () if source is None else ((self.weights[source], 1),), c)
        for number, (kind, data) in enumerate(self.atoms):
            total = {}
            if kind == "sum":
                for m, c in data: self.change(c, m, changes, total)
            elif kind in (*FUNCTIONS, "root"):
                # d exp(x m) = exp(x m) x dm, d root(x m) = root(x m) dm / 2m, d log(x m) = dm / m, and so on.
                (x, m), own = data, ((number, 1),)
                outer, times = {"exp": (own, x), "log": (power(m, -1), Fraction(1)),
                                "root": (multiply(own, power(m, -1)), Fraction(1, 2))}.get(kind, (None, None))
                inner = self.change(1, m, changes, {})
                if inner and outer is None:
                    other, times = {"gauss": ("density", x), "sin": ("cos", x), "cos": ("sin", -x)}[kind]
                    outer = ((self.atom(other, data), 1),)
                total = {multiply(outer, n): times * c for n, c in inner.items()}
            if self.fold(total) and (self.residue(total.items()) or self.expand(total, clear=True)):
                changes[number] = total
        outputs = (self.change(*self.values[cell], changes, {}) for cell in self.program.output)
        return not any(self.split(self.expand(self.fold(total), clear=True)) for total in outputs)
    def fold(self, total):
        """The same polynomial, with n times an atom in the place of n times all terms of a sum."""
        for m in list(total):
            for part, whole in ((d, whole) for d in divisors(m) for whole in self.sums.get(d, ())):
                terms, rest = self.atoms[whole][1], multiply(m, power(part, -1))
                x = total.get(m, 0) / dict(terms)[part]
                if x and all(total.get(multiply(rest, n)) == x * c for n, c in terms):
                    for n, _ in terms: del total[multiply(rest, n)]
                    add_term(total, multiply(rest, ((whole, 1),)), x)
        return total
    def expand(self, total, clear):
        """The polynomial with all sums written out, the last first; to clear, times what it is divided by."""
        while True:
            least = {a: min(dict(m).get(a, 0) for m in total) for m in total for a, e in m if e < 0 and clear}
            shift = tuple(sorted((a, -e) for a, e in least.items()))
            total, result = {multiply(m, shift): c for m, c in total.items()}, {}
            whole = max((a for m in total for a, e in m if e > 0 and self.atoms[a][0] == "sum"), default=None)
            if whole is None: return total
            for m, c in total.items():
                terms = self.atoms[whole][1] if dict(m).get(whole, 0) > 0 else (((), 1),)
                rest = multiply(m, ((whole, -1),)) if len(terms) > 1 else m
                for n, x in terms: add_term(result, multiply(rest, n), c * x)
                self.spend(len(terms), result)
            total = result
    def split(self, total):
        """The polynomial with exponentials of sums as products of others: exp(a + b) = exp a exp b."""
        result = {}
        for m, c in total.items():
            factors = ()
            for atom, e in m:
                kind, data = self.atoms[atom]
                inner = self.expand({data[1]: data[0]}, clear=False) if kind == "exp" else {}
                for n, x in inner.items():
                    factors = multiply(factors, ((self.atom("exp", (abs(x), n)), e if x > 0 else -e),))
                if kind != "exp": factors = multiply(factors, ((atom, e),))
            add_term(result, factors, c)
        return result
    def moving(self):
        """The atoms that inputs reach."""
        moving = set()
        for number, (kind, data) in enumerate(self.atoms):
            inner = [m for m, _ in data] if kind == "sum" else [data[1]] if kind in FUNCTIONS + ("root",) else []
            moves = kind in ("input", "positive", "order") or any(a in moving for m in inner for a, _ in m)
            if moves: moving.add(number)
        return moving
    def coefficients(self):
        """The rank of the span of all coefficients, without constants, of outputs that are polynomials in the inputs:
        they determine the function."""
        moving, rows = self.moving(), {}
        for place, (x, m) in enumerate(self.values[cell] for cell in self.program.output):
            for n, c in self.expand({m: x} if x else {}, clear=False).items():
                outer, inner = ([x for x in n if (x[0] in moving) == side] for side in (True, False))
                if any(e < 0 or self.atoms[a][0] != "input" for a, e in outer):
                    raise Unknown("an output was not seen to be a polynomial in the inputs")
                if inner: add_term(rows.setdefault((place, *outer), {}), tuple(inner), c)
        columns = sorted({n for row in rows.values() for n in row})
        afford(len(rows) * len(columns) * min(len(rows), len(columns)) * 10, "products of rationals")
        return rank([[row.get(n, ZERO) for n in columns] for row in rows.values()])

# Free values.
class Free:
    """Why log, gauss, sin and cos have no relations: docs/explanation/programs.md. Unknown where it is not seen."""
    def __init__(self, place, record, samples):
        self.program, self.place, self.record, self.symbols = place.program, place, record, Symbols(place.program)
        self.samples, self.moving, cells = samples, self.symbols.moving(), place.program.cells
        inside = set()
        for cell in sorted(self.program.needed, reverse=True):
            kind, data = cells[cell]
            if kind in ("exp", "gauss") or cell in inside: inside |= set(arguments(kind, data))
        self.inside = {cell for cell in inside if cells[cell][0] == "log"}
        kinds = self.program.kinds & set(FUNCTIONS)
        if {"log", "gauss"} <= kinds: raise Unknown("squares of arguments of gauss may differ by a logarithm")
        for names in (("log",), ("gauss",), ("sin", "cos")):
            if not kinds & set(names): continue
            own = self.distinct(names, names[0] == "sin")
            if not all(any(a in self.moving for a, _ in self.symbols.values[cell][1]) for cell in own):
                raise Unknown(f"{' and '.join(names)} of weights alone are not tested for relations")
            if len(own) > MAX_FREE: raise Unknown(f"{len(own)} values of {' and '.join(names)} are too many to test")
            if not getattr(self, f"{names[0]}_is_free")(own):
                raise Unknown(f"values of {' and '.join(names)} were not seen to be free")
        if self.inside and "exp" in kinds: self.check_inside()
    def distinct(self, names, up_to_signs=False, of=None):
        """The arguments of functions, those once that are equal on paper."""
        found = {}
        for cell in sorted(self.program.needed if of is None else of):
            kind, data = self.program.cells[cell]
            if kind in names:
                x, m = self.symbols.values[data]
                found.setdefault((abs(x) if up_to_signs else x, m), data if of is None else cell)
        return list(found.values())
    def rows(self, cells, count):
        """The cells at samples at which all of them exist."""
        others, rows = ([k] * self.program.levels for k in range(8 * count)), []
        afford(8 * count * self.program.size * self.program.levels, "steps for free values")
        for sample in (*self.samples[: 2 * count], *others):
            values = self.place.values(sample)
            own = [values[cell] for cell in cells]
            if None not in own: rows.append(own)
            if len(rows) == count: break
        return rows
    def changes(self, word, cells, level):
        """Changes of cells between inputs at the same weights, at more weights than there are cells."""
        p, rows, count = CHAIN[level], [], len(cells) + SPARE
        afford(8 * count * self.program.size * self.program.levels, "steps for free values")
        for number in range(2 * count):
            other = Place(self.program, {**self.record, "point": f"{self.record['point']}/{word}{number}"})
            drawn = [other.values([k] * self.program.levels, level) for k in range(4)]
            there = [own for own in ([values[cell] for cell in cells] for values in drawn) if None not in own]
            rows += [[(x - y) % p for x, y in zip(own, there[0])] for own in there[1:]]
            if len(rows) >= count: break
        return rows
    def log_is_free(self, own):
        """Exponentials are squares mod p: symbols of arguments and a constant are independent over GF(2)."""
        p, rows = CHAIN[0], self.rows(own, len(own) + 1 + SPARE)
        return rank_mod([[1, *(int(pow(x, (p - 1) // 2, p) != 1) for x in row)] for row in rows], 2) == len(own) + 1
    def gauss_is_free(self, own):
        """No square of an argument, and no difference of two, is constant; e beside kappa may be algebraic."""
        cells, symbols = self.program.cells, self.symbols
        taken = [symbols.values[cells[cell][1]] for cell in self.program.needed if cells[cell][0] in FUNCTIONS]
        if any(not m for _, m in taken): raise Unknown("e and pi may be algebraically dependent")
        rows = self.rows(own, SPARE)
        columns = [tuple((row[k] ** 2 - rows[0][k] ** 2) % CHAIN[0] for row in rows) for k in range(len(own))]
        return len(rows) > 1 and len({(0,) * len(rows), *columns}) == len(own) + 1
    def sin_is_free(self, own):
        """Arguments are independent over Q modulo functions of the weights, up to their signs."""
        return rank_mod(self.changes("angle", own, 0), CHAIN[0]) == len(own)
    def check_inside(self):
        """Logarithms inside of exponentials are independent of their arguments, which have no relations mod q alone."""
        taken, inner, q = self.distinct(("exp", "gauss")), self.distinct(("log",), of=self.inside), CHAIN[1]
        if len(taken) + len(inner) > MAX_FREE: raise Unknown("exponentials and logarithms are too many to test")
        table = self.changes("log", taken + inner, 1)
        without = rank_mod([row[: len(taken)] for row in table], q)
        if rank_mod(table, q) != without + len(inner): raise Unknown("exponentials of logarithms may be algebraic")
        written, self.symbols.work = [], 0
        for x, m in (self.symbols.values[cell] for cell in taken):
            terms = self.symbols.expand({m: x}, clear=False) if x else {}
            written.append({n: c for n, c in terms.items() if any(a in self.moving for a, _ in n)})
        columns = sorted({n for row in written for n in row})
        if rank([[row.get(n, ZERO) for n in columns] for row in written]) != without:
            raise Unknown(f"arguments of exponentials beside logarithms may be related mod {q} alone")

# The claim.
def read_fields(record, places):
    """Fields as lists of [weight that moves, weight by which or null for 1, rational], weights by their places."""
    require(type(record) is list and all(type(row) is list and row for row in record), "a list of fields is required")
    fields, last = [], len(places) - 1
    for row in record:
        terms = [array(term, 3, "term") for term in row]
        ends = [(places[integer(a, 0, last)], b if b is None else places[integer(b, 0, last)]) for a, b, _ in terms]
        fields.append({end: rational(c) for end, (_, _, c) in zip(ends, terms)})
        require(len(fields[-1]) == len(row), "a field names a term once")
    return fields

def vector(field, weights):
    """The field mod p at some weights."""
    p, row = CHAIN[0], [0] * len(weights)
    for (moved, source), c in field.items():
        require(c.denominator % p, "a denominator vanishes mod p")
        factor = 1 if source is None else weights[source]
        row[moved] = (row[moved] + c.numerator * pow(c.denominator, -1, p) * factor) % p
    return row

def orbit(symbols, fields, weights, columns=None):
    """The rank mod p of fields at some weights, on some columns, after a proof that each is a symmetry."""
    for number, field in enumerate(fields):
        if not symbols.keeps(field): raise Unknown(f"field {number} was not shown to be a symmetry here")
    rows = [vector(field, weights) for field in fields]
    return rank_mod([[row[k] for k in columns] for row in rows] if columns is not None else rows, CHAIN[0])

def fold_gains(symbols, record):
    """W = W' diag(1/g) along an axis, b = b' - W beta, for each fold [W, axis, g, beta or null, b or null]: the values
    of W and b. Each stands once, and none is the g or beta of another, so that the change can be inverted."""
    program, names, values = symbols.program, symbols.program.leaves["parameter"], {}
    require(type(record) is list and 0 < len(record) <= len(names), "a list of folds is required")
    folds = [array(row, 5, "fold") for row in record]
    moved = [name for row in folds for name in (row[0], row[4]) if name is not None]
    kept = [name for row in folds for name in (row[2], row[3]) if name is not None]
    require(all(type(name) is str and name in names for name in moved + kept), "folds name weights of the program")
    require(len(set(moved)) == len(moved) and not set(moved) & set(kept), "a fold changes what another one uses")
    own = {cell: ((atom, 1),) for cell, atom in zip(program.weights, symbols.weights)}
    for W, axis, g, shift, b in folds:
        require(W is not None and g is not None and (shift is None) == (b is None), "W, g, and both beta and b or none")
        n, m = len(names[g]), len(names[W]) // len(names[g])
        wide = [m, n] if integer(axis, 0, 1, "axis") else [n, m]
        require([program.shapes[x] for x in (W, g)] == [wide, [n]], "a matrix W, a vector g along an axis")
        require(b is None or [program.shapes[x] for x in (shift, b)] == [[n], [m]], "beta and b have other shapes")
        for k, cell in enumerate(names[W]):
            along = names[g][k % n if axis else k // m]
            values[cell] = Fraction(1), multiply(own[cell], power(own[along], -1))
        for i, cell in enumerate(names[b] if b is not None else ()):
            total = {own[cell]: Fraction(1)}
            for j in range(n):
                entry = names[W][i * n + j if axis else j * m + i]
                add_term(total, multiply(values[entry][1], own[names[shift][j]]), Fraction(-1))
            values[cell] = symbols.reduce(total)
    return values

def fixed_entries(record, shape):
    """All 0, all 1, or "identity": 1 where the last two indices are equal modulo the smaller of their sizes."""
    size = math.prod(shape)
    if record != "identity": return [integer(record, 0, 1, "fixed number")] * size
    require(len(shape) > 1, "identity: a tensor with two axes is required")
    n, m = shape[-1], min(shape[-2:])
    return [int((k // n % shape[-2] - k % n) % m == 0) for k in range(size)]

def exists(place, tensors):
    """Whether every cell that is inverted, or of which there is a root or logarithm, is not 0 at some sample of the
    slice on which these weights are fixed."""
    program, own = place.program, Place(place.program, {**COUNT, "region": place.region})
    for name, entries in tensors.items():
        own.drawn |= {(p, f"w{level}", name): entries for level, p in enumerate(CHAIN)}
        own.drawn[4097, f"r{place.region}", name] = [2048 + 1024 * x for x in entries]
    left = {data for kind, data in map(program.cells.__getitem__, program.needed) if kind in ("inverse", "root", "log")}
    for k in range(TRIES):
        if not left: break
        try: values = own.values([k] * program.levels)
        except Invalid: continue  # A sign without margin.
        left = {cell for cell in left if not values[cell]}
    return not left

def derive(record, places):
    """The program with these nodes, which no input reaches, as weights, without the weights behind them alone."""
    rows, moving, needed = record["nodes"], [], {record["output"]}
    for operation, sources, *_ in rows: moving.append(operation == "input" or any(moving[k] for k in sources))
    require(type(places) is list and 0 < len(places) <= len(rows), "a list of nodes is required")
    require(not any(moving[integer(k, 0, len(rows) - 1)] for k in places), "derived weights rest on weights alone")
    for k in reversed(range(len(rows))): needed |= {*rows[k][1]} if k in needed and k not in places else set()
    def derived(k, operation, sources, shape, data):
        if k in needed and k in places: return ["parameter", [], shape, {"name": f"derived {k}"}]
        if k in needed or operation != "parameter": return [operation, sources, shape, data]
        return ["constant", [], shape, {"entries": ["0"] * math.prod(shape)}]
    return {**record, "nodes": [derived(k, *row) for k, row in enumerate(rows)]}

METHODS = {"weights": (), "coefficients": (), "symmetries": ("fields",), "folds": ("folds", "fields"),
           "slice": ("fields", "fixed", "slice_fields"), "derived": ("nodes", "upper")}

def upper_bound(program, upper, rows, place):
    """What the method of the upper bound gives, and why. Gradients show at once that a field is no symmetry."""
    require(type(upper) is dict, "upper: an object is required")
    method = choice(upper.get("method"), [*METHODS][: 5 if rows is None else 6], "upper bound by")
    N, _ = len(program.weights), keys(upper, ("method", *METHODS[method]), "upper")
    if method == "weights": return N, "there are no more weights"
    if method == "coefficients": return Symbols(program).coefficients(), "the coefficients of the outputs are no more"
    if method == "derived":
        other = Program(derive(program.record, upper["nodes"]))
        bound, why = upper_bound(other, upper["upper"], None, Place(other, place.record))
        return bound, f"{why}, of derived weights"
    fields, names = read_fields(upper["fields"], range(N)), program.leaves["parameter"]
    (w,) = Point(COUNT, CHAIN[0]).draw("fields", 1, N)
    if method == "folds":
        symbols = Symbols(program, lambda symbols: fold_gains(symbols, upper["folds"]))
        return N - orbit(symbols, fields, w), f"{len(fields)} fields are symmetries with gains taken into matrices"
    for number, own in enumerate(vector(field, place.weights) for field in fields):
        still = all(sum(map(mul, own, row)) % CHAIN[0] == 0 for row in rows or ())
        require(still, f"field {number} changes an output mod {CHAIN[0]}: it is no symmetry")
    if method == "symmetries": return N - orbit(Symbols(program), fields, w), f"{len(fields)} fields are symmetries"
    require(type(upper["fixed"]) is dict and set(upper["fixed"]) < set(names), "names of some weights are required")
    tensors = {name: fixed_entries(x, program.shapes[name]) for name, x in upper["fixed"].items()}
    require(exists(place, tensors), "the slice may be one of points at which the network does not exist")
    fixed = {cell: x for name, own in tensors.items() for cell, x in zip(names[name], own)}
    at = [fixed.get(cell, x) for cell, x in zip(program.weights, w)]
    held, free = ([k for k, cell in enumerate(program.weights) if (cell in fixed) == side] for side in (True, False))
    require(orbit(Symbols(program), fields, at, held) == len(held), "what is fixed is not moved freely")
    own = read_fields(upper["slice_fields"], free)
    symbols = Symbols(program, lambda symbols: {cell: (Fraction(x), ()) for cell, x in fixed.items()})
    return len(free) - orbit(symbols, own, w), f"{len(fields)} symmetries reach a slice, which has {len(own)}"

def check_program(claim, witness):
    """The reason why the functions of a program form a set of the claimed dimension."""
    keys(claim, ("kind", "program", "dimension"), "claim")
    program, size = Program(claim["program"]), integer(claim["dimension"], 0, 10**9, "dimension")
    lower, upper = (keys(witness, ("lower", "upper"), "witness")[key] for key in ("lower", "upper"))
    if type(lower) is dict and "degree" in lower: raise Unknown("roots in fields larger than GF(p) are not rechecked")
    keys(lower, ("point", "region", "samples", "outputs", "columns"), "lower")
    if program.levels > len(CHAIN): raise Unknown("exponentials are nested deeper than the chain of primes")
    afford(size**3 / 20 + size * program.size * program.levels * 20, "steps for the minor")
    place, N, outputs = Place(program, lower), len(program.weights), len(program.output)
    samples = [[integer(k, 0, 2**40) for k in array(sample, program.levels, "sample")]
               for sample in array(lower["samples"], size, "samples")]
    forms = [integer(k, -1, outputs - 1) for k in array(lower["outputs"], size, "outputs")]
    columns = {integer(k, 0, N - 1) for k in array(lower["columns"], size, "columns")}
    rows = [place.gradient(sample, form) for sample, form in zip(samples, forms)]
    require(rank_mod([[row[k] for k in columns] for row in rows], CHAIN[0]) == size, f"the minor is 0 mod {CHAIN[0]}")
    if "root" in program.kinds:
        afford(TRIES * program.size * program.levels, "steps for the signs of roots")
        if not place.has_free_roots(lower): raise Unknown("signs of roots were not seen to be free")
    program.look_at_numbers()
    free = sorted(program.kinds & set(FUNCTIONS) - {"exp"})
    if free: Free(place, lower, samples)
    bound, why = upper_bound(program, upper, rows, place)
    require(bound <= size, f"the upper bound is {bound}, not {size}")
    words = "; exponentials are independent by Ax (on paper)" if "exp" in program.kinds else ""
    words += f"; values of {', '.join(free)} are free (on paper, with its hypotheses seen mod p)" if free else ""
    words += "; angles of its classes are taken to be independent over Q" if "circle" in program.kinds else ""
    words += "; of the region of its point" if program.kinds & {"positive", "order"} else ""
    return f"a minor of size {size} is not 0 mod {CHAIN[0]}, and {why}: at most {bound}{words}"
