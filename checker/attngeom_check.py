#!/usr/bin/env python3
"""Check certificates of attngeom with the standard library alone: python -I -S attngeom_check.py CERT...

Nothing here comes from attngeom: every check is written from the definitions in docs/explanation/trust.md. A layer is
phi(X)_ij = sum_s sum_kln V_in x_ns x_ks A_kl x_lj with A = K^T Q, tokens are columns. One line for each certificate:
valid (it proves its claim, and the line says what rests on a proof on paper), invalid (it proves nothing, which does
not make the claim false) or unknown (this file cannot tell, and says why). Exit code 0: all are valid; 1: one is
invalid; 2: none is invalid, one is unknown.
"""

import hashlib, json, math, re, sys
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations, product
from operator import mul

VERSION, MAX_BYTES, MAX_WORK, WORD_PRIME = 2, 2**28, 3 * 10**9, 2147483629
ZERO, COUNT, PRIMES = Fraction(0), {"point": "attngeom/count"}, set()

class Invalid(Exception): """The certificate does not prove its claim."""
class Unknown(Exception): """This file cannot tell."""
def require(condition, reason):
    if not condition: raise Invalid(reason)
PAPER = {x: x for x in "67HX"} | {"D": "D or D2", "S": "S or D2", "layers": "D, S or none", "virtual": "A, A' or S"}
PAPER |= dict.fromkeys(("plane", "plane, two heads", "one token"), "(open-problems.md)")
def unknown(claim, witness, *own):
    word = "X" if claim["kind"] == "learning-coefficient" else str(witness.get("theorem", witness.get("argument")))
    if word not in PAPER or claim.get("same"): raise Unknown("attngeom verify alone computes what this claim rests on")
    raise Unknown(f"rests on the paper proof of Theorem {PAPER[word]}, whose hypotheses attngeom verify alone checks")
def afford(work, what):
    if work > MAX_WORK: raise Unknown(f"{work:.1e} {what} are needed; {MAX_WORK:.0e} are done here")

# Strict reading: exact keys, numbers in lowest terms, indices in range and in order.
def show(value): return repr(value)[:40]
def keys(value, names, what):
    require(type(value) is dict and set(value) == set(names), f"{what}: keys {', '.join(sorted(names))} are required")
    return value
def integer(value, least, most, what="index"):
    require(type(value) is int and least <= value <= most, f"{what} {show(value)}: {least} to {most} is required")
    return value
def array(value, length, what="list"):
    require(type(value) is list and len(value) == length, f"{what}: a list of {length} is required")
    return value
def indices(value, length, bound, strict=True):
    found = [integer(x, 0, bound - 1) for x in array(value, length, "indices")]
    require(all(x < y or (x == y and not strict) for x, y in pairwise(found)), "increasing indices are required")
    return found
def multisets(value, size, bound, count):
    found = [indices(x, size, bound, strict=False) for x in array(value, count, "multisets")]
    require(all(x < y for x, y in pairwise(found)), "multisets in increasing order are required")
    return found
def matrix(value, rows, columns, entry):
    return [[entry(x) for x in array(row, columns, "row")] for row in array(value, rows, "matrix")]
def small(value): return integer(value, 1 - 10**19, 10**19 - 1, "integer")
def rational(value):
    found = re.fullmatch(r"(-?[0-9]+)(?:/([0-9]*[1-9][0-9]*))?", value) if type(value) is str else None
    require(found, f"{show(value)}: a rational number is required")
    if len(value) > 10**5: raise Unknown(f"a number of {len(value):,} characters is beyond what is read here")
    number = Fraction(int(found[1]), int(found[2] or 1))
    require(str(number) == value, f"{show(value)}: lowest terms are required")
    return number
def choice(value, choices, what):
    require(type(value) is str and value in choices, f"{what} {show(value)}: one of {', '.join(choices)} is required")
    return value
def prime(value, least=2):
    p = integer(value, least, 2**31 - 1, "prime")
    require(p in PRIMES or all(p % q for q in range(2, math.isqrt(p) + 1)), f"{p} is no prime")
    return PRIMES.add(p) or p

# Linear algebra: mod p with a whole row in one long integer, and over Q.
def rank_mod(rows, p):
    """The rank mod p. Rows are packed: adding a multiple of a row is one product of long integers."""
    n, pivots = len(rows[0]) if rows else 0, []
    afford(len(rows) ** 2 * n / 20, "steps of an elimination")
    size = (2 * p.bit_length() + len(rows).bit_length() + 9) // 8
    for row in rows:
        total = int.from_bytes(b"".join((x % p).to_bytes(size, "little") for x in row), "little")
        for place, pivot in pivots: total += -(total >> place & (1 << 8 * size) - 1) % p * pivot
        text = total.to_bytes(size * n, "little")
        left = [int.from_bytes(text[i : i + size], "little") % p for i in range(0, size * n, size)]
        lead = next((i for i, x in enumerate(left) if x), None)
        if lead is not None:
            inverse = pow(left[lead], -1, p)
            packed = b"".join((x * inverse % p).to_bytes(size, "little") for x in left)
            pivots.append((8 * size * lead, int.from_bytes(packed, "little")))
    return len(pivots)

def eliminate(rows):
    """The rank over Q, and the determinant if the matrix is square."""
    rows, found, value = [[Fraction(x) for x in row] for row in rows], 0, Fraction(1)
    for column in range(len(rows[0]) if rows else 0):
        swap = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        value *= 0 if swap is None else rows[swap][column] * (1 if swap == found else -1)
        if swap is None: continue
        rows[swap], rows[found] = rows[found], rows[swap]
        top, found = rows[found], found + 1
        for i in range(found, len(rows)):
            if rows[i][column]:
                factor = rows[i][column] / top[column]
                rows[i] = [x - factor * y if y else x for x, y in zip(rows[i], top)]
    return found, value

def rank(rows): return eliminate(rows)[0]
def determinant(rows): return eliminate(rows)[1]
def negative(a): return [[-x for x in row] for row in a]
def transpose(a): return [list(column) for column in zip(*a)]
def matmul(a, b, m=None):
    columns = list(zip(*b))
    if m is None: return [[sum(map(mul, row, column)) for column in columns] for row in a]
    return [[sum(map(mul, row, column)) % m for column in columns] for row in a]
def add(a, b, m, sign=1): return [[(x + sign * y) % m for x, y in zip(*rows)] for rows in zip(a, b)]
def flat(*matrices): return [x for a in matrices for row in a for x in row]

# Numbers of Q(sqrt(D)) and of Q(theta), theta a root of an irreducible cubic.
class Number:
    """An element of Q[x] modulo a monic polynomial, given without its leading 1: the coefficients of powers."""
    def __init__(self, parts, modulus): self.parts, self.modulus = parts, modulus
    def __add__(self, other):
        other = other.parts if isinstance(other, Number) else [other, 0, 0]
        return Number([x + y for x, y in zip(self.parts, other)], self.modulus)
    def __mul__(self, other):
        if not isinstance(other, Number): return Number([x * other for x in self.parts], self.modulus)
        n, total = len(self.parts), [ZERO] * (2 * len(self.parts) - 1)
        for (i, x), (j, y) in product(enumerate(self.parts), enumerate(other.parts)): total[i + j] += x * y
        for top in range(2 * n - 2, n - 1, -1):
            for k, c in enumerate(self.modulus): total[top - n + k] -= total[top] * c
        return Number(total[:n], self.modulus)
    def __eq__(self, other):
        return self.parts == (other.parts if isinstance(other, Number) else [other] + [0] * (len(self.parts) - 1))
    __radd__, __rmul__, __hash__ = __add__, __mul__, None
def quadratic(value, D):
    """A text a, b*sqrt(D) or a+b*sqrt(D), nothing else."""
    tail, modulus = f"*sqrt({D})", [Fraction(-D), ZERO]
    if type(value) is not str or not value.endswith(tail): return Number([rational(value), ZERO], modulus)
    found = re.fullmatch(r"(?:(-?[1-9][0-9]*(?:/[0-9]+)?)(?=[+-]))?\+?(-?[0-9/]+)", value[: -len(tail)])
    require(found and (found[1] or value[0] != "+"), f"{show(value)}: a+b*sqrt(D) is required")
    a, b = rational(found[1] or "0"), rational(found[2])
    require(b != 0 and value == f"{found[1] or ''}{'+' if found[1] and b > 0 else ''}{b}{tail}", "lowest terms")
    return Number([a, b], modulus)
def read_field(name, real):
    """The reader of entries for Q or Q(sqrt(D)), real or imaginary as the verdict needs."""
    if name == "Q" and real: return rational
    found = re.fullmatch(r"Q\(sqrt\((-?[1-9][0-9]{0,900})\)\)", name) if type(name) is str else None
    require(found, f"field {show(name)}: Q(sqrt(D)) is required, or Q for real weights")
    is_square = (D := int(found[1])) > 0 and math.isqrt(D) ** 2 == D
    require((D > 0) == real and not is_square and all(D % q**2 for q in range(2, 2000)), "D does not fit")
    return lambda text: quadratic(text, D)
def field_rank(a):
    """The rank over Q or Q(sqrt(D)): that of the blocks by which numbers multiply 1 and sqrt(D), over 2."""
    if not isinstance(a[0][0], Number): return rank(a)
    units = [Number([Fraction(x) for x in unit], a[0][0].modulus) for unit in ((1, 0), (0, 1))]
    return rank([[part for x in row for part in (x * unit).parts] for row in a for unit in units]) // 2

# Coefficients of a cubic map, and the definitions of the equations that all layers satisfy.
class Cubic:
    """The terms of a claim: ordinary coefficients by output (row, column) and sorted monomial of (row, column)."""
    def __init__(self, record):
        keys(record, ("format", "version", "d", "d_out", "t", "terms"), "coefficients")
        require(record["format"] == "attngeom/coefficients" and type(record["terms"]) is list, "another format")
        integer(record["version"], 1, 1, "version")
        self.d, self.d_out, self.t = (integer(record[key], 1, 10**18, key) for key in ("d", "d_out", "t"))
        size = self.d_out * self.t * (math.comb(self.d + 2, 3) + (self.t - 1) * self.d * math.comb(self.d + 1, 2))
        if size > 4 * 10**6: raise Unknown(f"{size:.1e} coefficients are beyond what is read here")
        self.values, self.outside = {}, False
        for term in record["terms"]:
            keys(term, ("output", "monomial", "value"), "term")
            output, value = self.entry(term["output"], self.d_out), rational(term["value"])
            monomial = tuple(sorted(self.entry(x, self.d) for x in array(term["monomial"], 3, "monomial")))
            require(value != 0 and (output, monomial) not in self.values, "a term is 0 or repeated")
            self.values[output, monomial] = value
            self.outside |= not self.is_seen(output[1], monomial)
    def entry(self, value, rows):
        row, column = array(value, 2, "[row, column]")
        return integer(row, 0, rows - 1), integer(column, 0, self.t - 1)
    @staticmethod
    def is_seen(column, monomial):
        """Whether attention contains it: three entries of the target column, or one and two of another column."""
        others = [c for _, c in monomial if c != column]
        return not others or (len(others) == 2 and others[0] == others[1])
    def coefficient(self, i, j, *entries): return self.values.get(((i, j), tuple(sorted(entries))), ZERO)
    def cross(self, i, j, n, k, l, m):
        """y at x_kn x_ln x_mj: the coefficient over the number of orders of (k, l)."""
        return self.coefficient(i, j, (k, n), (l, n), (m, j)) / (1 if k == l else 2)
    def single(self, i, j, *R): return self.coefficient(i, j, *((k, j) for k in R)) / len(set(permutations(R)))
    def y(self, i, k, l, m): return self.cross(i, 0, 1, k, l, m)  # Target column 0, context column 1.
    def row(self, data): return integer(data.get("row"), 0, self.d_out - 1)
    def column(self, data, key="column"): return integer(data.get(key), 0, self.t - 1)

def pick_slice(data, c):
    """The quadrics of one output row, or of one target with outputs in the place of targets: the table is symmetric."""
    row = choice(keys(data["slice"], ("side", "index"), "slice")["side"], ("row", "target"), "side") == "row"
    own = integer(data["slice"]["index"], 0, (c.d_out if row else c.d) - 1)
    return (lambda k, l, m: c.y(own, k, l, m) if row else c.y(m, k, l, own)), c.d if row else c.d_out

def on_line(data, c):
    """m -> (q_m(p), B_m(p, r), q_m(r)) for the quadrics of a slice and two points of a line."""
    y, count = pick_slice(data, c)
    p, r = matrix(data["line"], 2, c.d, small)
    def form(m, u, w):
        return sum((y(k, l, m) * a * b for k, a in enumerate(u) if a for l, b in enumerate(w) if b), ZERO)
    return (lambda m: (form(m, p, p), form(m, p, r), form(m, r, r))), count

def support(data, c):
    """No layer contains this monomial."""
    output = c.entry(keys(data, ("output", "monomial"), "data")["output"], c.d_out)
    entries = [c.entry(x, c.d) for x in array(data["monomial"], 3, "monomial")]
    require(entries == sorted(entries) and not c.is_seen(output[1], entries), "a monomial outside is required, sorted")
    return c.coefficient(*output, *entries), 1
def sequence_copy(data, c):
    """Columns do not matter."""
    i, j = c.row(data), c.column(data)
    if "R" in data:
        R = indices(keys(data, ("row", "column", "R"), "data")["R"], 3, c.d, strict=False)
        return c.single(i, j, *R) - c.single(i, 0, *R), 1
    keys(data, ("row", "column", "context", "S", "m"), "data")
    n, m, (k, l) = c.column(data, "context"), integer(data["m"], 0, c.d - 1), indices(data["S"], 2, c.d, strict=False)
    require(n != j, "context and target must differ")
    return c.cross(i, j, n, k, l, m) - c.y(i, k, l, m), 1
def symmetrization(data, c):
    """|orb R| y_R is the sum of |orb S| y_(S,m) over R = S + m: one summand for each order of R."""
    R = indices(keys(data, ("row", "column", "R"), "data")["R"], 3, c.d, strict=False)
    i, j = c.row(data), c.column(data)
    terms = (c.single(i, j, *R) - c.cross(i, j, int(j == 0), k, l, m) for k, l, m in set(permutations(R)))
    return sum(terms, ZERO), 1
def attention_rank(data, c):
    """(y_(S,m)) = Phi(v) A has rank at most a."""
    keys(data, ("row", "pairs", "targets"), "data")
    require(type(data["targets"]) is list and data["targets"], "targets: a list is required")
    size, i, targets = len(data["targets"]), c.row(data), indices(data["targets"], len(data["targets"]), c.d)
    return determinant([[c.y(i, k, l, m) for m in targets] for k, l in multisets(data["pairs"], 2, c.d, size)]), size
def segre_quadric(data, c):
    """T_nm T_sr = T_nr T_sm, the coefficient of z^W."""
    keys(data, ("rows", "targets", "W"), "data")
    (n, s), (m, r) = indices(data["rows"], 2, c.d_out), indices(data["targets"], 2, c.d)
    orders = set(permutations(indices(data["W"], 4, c.d, strict=False)))
    terms = (c.y(n, p, q, m) * c.y(s, u, v, r) - c.y(n, p, q, r) * c.y(s, u, v, m) for p, q, u, v in orders)
    return sum(terms, ZERO), 2
def slice_pencil(data, c):
    """Sum_m c_m T_m has rank at most 2: the coefficient of c^K in a 3-minor."""
    y, count = pick_slice(keys(data, ("slice", "I", "J", "K"), "data"), c)
    I, J, K = indices(data["I"], 3, c.d), indices(data["J"], 3, c.d), indices(data["K"], 3, count, strict=False)
    minors = (determinant([[y(i, j, m) for j in J] for i, m in zip(I, order)]) for order in set(permutations(K)))
    return sum(minors, ZERO), 3
def binary_restriction(data, c):
    """Quadrics alpha_m nu on a line: at most two are independent."""
    restricted, count = on_line(keys(data, ("slice", "line", "targets"), "data"), c)
    return determinant([restricted(m) for m in indices(data["targets"], 3, count)]), 3
def sylvester_resultant(data, c):
    """They share the root of nu, so combinations of two have resultant M02^2 - 4 M01 M12 = 0 in 2-minors M: hence its
    coefficients at products of 2-subsets that meet, or at the two sums that Pluecker's relation leaves for others."""
    restricted, count = on_line(keys(data, ("slice", "line", "square"), "data"), c)
    require(type(data["square"]) is list, "square: a list is required")
    square = [tuple(indices(x, 2, count) for x in array(pair, 2, "products")) for pair in data["square"]]
    require(all(b <= e for b, e in square), "the 2-subsets must be in increasing order")
    if not (len(square) == 1 and set(square[0][0]) & set(square[0][1])):
        w, x, y, z = (sorted({k for pair in square for b in pair for k in b}) + [-1] * 4)[:4]
        first, second, third = ([w, x], [y, z]), ([w, y], [x, z]), ([w, z], [x, y])
        require(square in ([first, second], [second, third]), "these products are no coefficient of a resultant")
    total = ZERO
    for pair in square:
        (a01, a02, a12), (b01, b02, b12) = ([x[i] * z[j] - x[j] * z[i] for i, j in ((0, 1), (0, 2), (1, 2))]
                                            for x, z in (map(restricted, b) for b in pair))
        total += a02 * b02 - 2 * (a01 * b12 + b01 * a12)
    return total, 4
def lie_plane(data, c):
    """A plane cubic with a linear factor has a stabilizer in sl_3: x_u dF/dx_v are dependent, 8-minors vanish."""
    keys(data, ("combination", "plane", "rows"), "data")
    w = [small(x) for x in array(data["combination"], c.d_out, "combination")]
    plane, rows, table = matrix(data["plane"], 3, c.d, small), indices(data["rows"], 8, 10), []
    F = dict.fromkeys(combinations_with_replacement(range(3), 3), ZERO)
    for (output, monomial), value in c.values.items():
        if output[1] == 0 and w[output[0]] and all(column == 0 for _, column in monomial):
            for place in product(range(3), repeat=3):
                forms = [plane[u][k] for u, (k, _) in zip(place, monomial)]
                F[tuple(sorted(place))] += w[output[0]] * value * math.prod(forms)
    def entry(R, u, v):
        rest = tuple(sorted([*R[: R.index(u)], *R[R.index(u) + 1 :], v])) if u in R else ()
        return F[rest] * rest.count(v) if rest else ZERO
    for R in (list(F)[place] for place in rows):
        own = [entry(R, u, v) for u, v in permutations(range(3), 2)]
        table.append(own + [entry(R, u, u) - entry(R, u + 1, u + 1) for u in range(2)])
    return determinant(table), 8
def shared_quadric(data, c):
    """F = nu q and G = mu q satisfy mu F = nu G: the 2d quartics z_k F, z_k G are dependent."""
    forms = matrix(keys(data, ("combinations", "monomials"), "data")["combinations"], 2, c.d_out, small)
    columns, table = multisets(data["monomials"], 4, c.d, 2 * c.d), []
    afford(4 * c.d**2 * c.d_out, "coefficients for the quartics")
    for w, k in product(forms, range(c.d)):
        rests = [[*W[: W.index(k)], *W[W.index(k) + 1 :]] if k in W else None for W in columns]
        table.append([sum((x * c.coefficient(n, 0, *((r, 0) for r in rest)) for n, x in enumerate(w) if x), ZERO)
                      if rest else ZERO for rest in rests])
    return determinant(table), 2 * c.d

FAMILIES = {"support": support, "sequence-copy": sequence_copy, "symmetrization": symmetrization}
LINEAR, ONE_TOKEN = tuple(FAMILIES), ("support", "lie-plane", "shared-quadric")
QUADRICS = {"attention-rank": attention_rank, "segre-quadric": segre_quadric, "slice-pencil": slice_pencil}
QUADRICS |= {"binary-restriction": binary_restriction, "sylvester-resultant": sylvester_resultant}
FAMILIES |= {**QUADRICS, "lie-plane": lie_plane, "shared-quadric": shared_quadric}

def check_violated(c, attention, violated, families=tuple(FAMILIES)):
    """An equation of all layers has a value here that is not 0."""
    keys(violated, ("family", "degree", "data", "value"), "violated")
    family, data = choice(violated["family"], families, "family"), violated["data"]
    require(type(data) is dict and (c.t >= 2 or family in ONE_TOKEN), "data, or two tokens, are required")
    value, degree = FAMILIES[family](data, c)
    require(type(violated["degree"]) is int and violated["degree"] == degree, f"the degree is {degree}")
    if family == "attention-rank":
        require(attention is not None and degree == attention + 1, "the minor must have size attention + 1")
    require(rational(violated["value"]) == value != 0, f"the value is {str(value)[:40]}; another one, or 0, is claimed")
    return f"the equation {family} of degree {degree} holds for all layers and has the value {str(value)[:40]}"

# Claims about one layer and about heads.
def expand_row(A, v):
    """The coefficients of sum_s (v x_s)(x_s^T A x_j): {(k, l, m): of x_ks x_ls x_mj}, {(k, l, m): in one column}."""
    cross, single = {}, {}
    for (k, l), m in product(combinations_with_replacement(range(len(A)), 2), range(len(A))):
        cross[k, l, m] = value = v[k] * A[l][m] if k == l else v[k] * A[l][m] + v[l] * A[k][m]
        single[R] = single.get(R := tuple(sorted((k, l, m))), ZERO) + value
    return cross, single

def compare(c, rows):
    """The terms are those of these rows in all columns, and there are no others."""
    require(not c.outside, "a term lies outside the support of attention")
    times = c.t * (c.t - 1), c.t
    count = sum(n * sum(x != 0 for x in part.values()) for row in rows for n, part in zip(times, row))
    require(count == len(c.values), f"the weights have {count} terms, the claim {len(c.values)}")
    for ((i, j), monomial), value in c.values.items():
        own = sorted(k for k, column in monomial if column != j)
        place = (*own, *(k for k, column in monomial if column == j))
        require(rows[i][0 if own else 1][place] == value, f"another coefficient in output ({i}, {j})")

def check_layer(claim, witness, version):
    keys(claim, ("kind", "verdict", "attention", "rank", "coefficients"), "claim")
    verdict = choice(claim["verdict"], ("realizable", "closure_only", "not_realizable"), "verdict")
    attention, claimed, c = claim["attention"], claim["rank"], Cubic(claim["coefficients"])
    for x, least, own in ((attention, 1, "attention"), (claimed, 0, "rank")): x is None or integer(x, least, 10**9, own)
    if "form" in witness: return check_form(c, verdict, attention, claimed, witness)
    if verdict == "not_realizable":
        require(claimed is None, "a refutation claims no rank")
        return check_violated(c, attention, keys(witness, ("violated",), "witness")["violated"])
    entry = read_field(keys(witness, ("field", "points"), "witness")["field"], verdict == "realizable")
    points = witness["points"]
    require(type(points) is list and 1 <= len(points) <= 2 and points[1:] != points[:1], "one or two points, different")
    afford(c.d**3 * c.d_out * 30, "products of rationals")
    for point in points:
        A, V = matrix(keys(point, ("A", "V"), "point")["A"], c.d, c.d, entry), matrix(point["V"], c.d_out, c.d, entry)
        compare(c, [expand_row(A, v) for v in V])
        require(claimed == field_rank(A) <= (attention or c.d), f"A has rank {field_rank(A)}")
        if verdict == "closure_only":
            # A = k q^T, V = h v^T, k and v no multiples of real vectors: the fiber (k q^T, h v^T), (v q^T, h k^T).
            require(c.t >= 2 and claimed == field_rank(V) == 1, "two tokens and rank A = rank V = 1 are required")
            for rows in (transpose(A), V):
                vector = next(row for row in rows if any(x != 0 for x in row))
                require(rank(transpose([x.parts for x in vector])) == 2, "a factor is proportional to a real vector")
    real = "" if verdict == "realizable" else "; no real ones do, by [G] Theorem 3.2 (on paper)"
    return f"the weights over {witness['field']} expand to all coefficients, rank A = {claimed}{real}"

def check_form(c, verdict, attention, claimed, witness):
    """One token: F_n = nu_n x^T B x, and the signature (p, n) of B: rank max(p, n) over R, half of p + n over C."""
    form = keys(keys(witness, ("form",), "witness")["form"], ("modulus", "V", "B"), "form")
    require(c.t == 1, "a form is a witness for one token")
    entry = rational
    if form["modulus"] is not None:
        modulus = [rational(x) for x in array(form["modulus"], 4, "modulus")]
        require(modulus.pop() == 1 and is_irreducible(modulus), "an irreducible monic cubic is required")
        entry = lambda x: Number([rational(y) for y in array(x, 3, "number")], modulus)  # noqa: E731
    afford(c.d**3 * (c.d_out + c.d) * 200, "products in a field")
    V, B = matrix(form["V"], c.d_out, c.d, entry), matrix(form["B"], c.d, c.d, entry)
    require(transpose(B) == B and any(x != 0 for x in flat(V)), "B must be symmetric, V not 0")
    compare(c, [({}, expand_row(B, v)[1]) for v in V])
    p, n = signature(B)
    size, needed, half, bound = p + n, max(p, n), (p + n + 1) // 2, p + n if attention is None else attention
    holds = {"realizable": needed <= bound, "closure_only": needed > bound >= half, "not_realizable": size > 2 * bound}
    expected = {"realizable": size if size <= bound else needed, "closure_only": half, "not_realizable": None}
    require(holds[verdict] and claimed == expected[verdict], f"signature ({p}, {n}) says otherwise")
    return f"every row is a linear form times one quadratic form of signature ({p}, {n})"

def is_irreducible(modulus):
    """A monic cubic without root modulo some prime has none in Q; one of three primes or more shows it."""
    for p in (q for q in range(5, 4000) if all(q % k for k in range(2, math.isqrt(q) + 1))):
        if all(x.denominator % p for x in modulus):
            c0, c1, c2 = (x.numerator * pow(x.denominator, -1, p) for x in modulus)
            if all((((x + c2) * x + c1) * x + c0) % p for x in range(p)): return True
    return False

def signature(B):
    """Descartes' rule on det(x - B): all roots are real, so it is exact. The polynomial by Faddeev and LeVerrier."""
    coefficients, M = [Fraction(1)], [[ZERO] * len(B) for _ in B]
    for k in range(1, len(B) + 1):
        M = matmul(B, [[x + coefficients[-1] if i == j else x for j, x in enumerate(row)] for i, row in enumerate(M)])
        coefficients.append(sum(M[i][i] for i in range(len(B))) * Fraction(-1, k))
    both = [[sign(x) * flip**k for k, x in enumerate(coefficients)] for flip in (1, -1)]
    return [sum(x != y for x, y in pairwise([s for s in row if s])) for row in both]

def sign(x):
    """At the least real root of the modulus, enclosed by Sturm's theorem and bisection until the sign is clear."""
    if not isinstance(x, Number) or x == 0: return 0 if x == 0 else 1 if x > 0 else -1
    c0, c1, c2 = x.modulus
    # The modulus, its derivative, and minus the remainders of the divisions that follow.
    u, w = c2 * c2 * Fraction(2, 9) - c1 * Fraction(2, 3), c1 * c2 / 9 - c0
    last = -(3 * w * w / u**2 - 2 * c2 * w / u + c1) if u else 0
    def count(z):
        chain = (((z + c2) * z + c1) * z + c0, (3 * z + 2 * c2) * z + c1, u * z + w, last)
        return sum((y > 0) != (z > 0) for y, z in pairwise([y for y in chain if y]))
    high = 1 + abs(c0) + abs(c1) + abs(c2)
    low, (a, b, c), most = -high, x.parts, count(-high)
    while True:
        ends = [low, high] + ([-b / (2 * c)] if c and low < -b / (2 * c) < high else [])
        values = [a + z * (b + z * c) for z in ends]
        if count(high) == most - 1 and (min(values) > 0 or max(values) < 0): return 1 if values[0] > 0 else -1
        middle = (low + high) / 2
        low, high = (low, middle) if count(middle) < most else (middle, high)

def check_heads(claim, witness, version):
    keys(claim, ("kind", "verdict", "heads", "attention", "value", "coefficients"), "claim")
    verdict = choice(claim["verdict"], ("realizable", "not_realizable"), "verdict")
    H, a, v = (integer(claim[key], 1, 10**9, key) for key in ("heads", "attention", "value"))
    c = Cubic(claim["coefficients"])
    require(c.t >= 2, "claims about heads need two tokens")
    if verdict == "realizable":
        heads = keys(witness, ("heads",), "witness")["heads"]
        require(type(heads) is list and len(heads) <= H, f"at most {H} heads are required")
        afford(c.d**3 * c.d_out * 30 * len(heads), "products of rationals")
        total, odd = [({}, {}) for _ in range(c.d_out)], {}
        for head in heads:
            entry = read_field(keys(head, ("field", "A", "V"), "head")["field"], True)
            A, V = matrix(head["A"], c.d, c.d, entry), matrix(head["V"], c.d_out, c.d, entry)
            require(field_rank(A) <= a and field_rank(V) <= v, "a rank is above its bound")
            for parts, row in zip(total, V):
                for own, (key, x) in ((own, e) for own, more in zip(parts, expand_row(A, row)) for e in more.items()):
                    first, second = x.parts if isinstance(x, Number) else (x, ZERO)
                    own[key], place = own.get(key, ZERO) + first, (head["field"], id(own), key)
                    odd[place] = odd.get(place, ZERO) + second
        require(not any(odd.values()), "the coefficients of the heads are not rational")
        compare(c, total)
        return f"{len(heads)} heads within the ranks expand to all coefficients"
    if set(witness) == {"violated"}:
        return check_violated(c, None, witness["violated"], LINEAR) + "; sums of heads satisfy it too"
    require(not c.outside, "a term outside the support was left out of account")
    if set(witness) == {"commutant"}: return check_commutant(c, H, a, v, witness["commutant"])
    minor = keys(keys(witness, ("minor",), "witness")["minor"], ("side", "rows", "columns", "value"), "minor")
    output = choice(minor["side"], ("output", "target"), "side") == "output"
    size, (count, others) = H * (v if output else a) + 1, (c.d_out, c.d) if output else (c.d, c.d_out)
    require(size <= count, "the flattening has too few rows for this minor")
    rows, table = indices(minor["rows"], size, count), []
    for place in array(minor["columns"], size, "columns"):
        other, *pair = array(place, 3, "[index, k, l]")
        other, (k, l) = integer(other, 0, others - 1), indices(pair, 2, c.d, strict=False)
        # In the table a quadric has ordinary coefficients: twice y where k and l differ.
        ends = [(row, other) if output else (other, row) for row in rows]
        table.append([c.y(n, k, l, m) * (1 if k == l else 2) for n, m in ends])
    value = determinant(table)
    require(rational(minor["value"]) == value != 0, f"the value is {str(value)[:40]}; another one, or 0, is claimed")
    return f"a minor of size {size} of the flattening, which has rank at most {size - 1} on sums of heads, is not 0"

def check_commutant(c, H, a, v, record):
    """Rows and columns of full flattening ranks Hv and Ha: a sum of H heads would be a direct sum (Theorem H)."""
    keys(record, ("rows", "columns", "basis", "argument"), "commutant")
    n, m, p, argument = H * v, H * a, WORD_PRIME, record["argument"]
    require(n <= c.d_out and m <= c.d and type(argument) is dict, "the flattenings have too few rows")
    if n * n + m * m > 2600: raise Unknown(f"a commutant with {n * n + m * m} unknowns is beyond what is checked here")
    rows, columns = indices(record["rows"], n, c.d_out), indices(record["columns"], m, c.d)
    pairs = list(combinations_with_replacement(range(c.d), 2))
    C = [[[c.y(i, k, l, j) * (1 if k == l else 2) for j in columns] for i in rows] for k, l in pairs]
    common = math.lcm(*(x.denominator for s in C for x in flat(s)))
    require(common % p, "a denominator vanishes mod p")
    R = [[[int(x * common) for x in row] for row in s] for s in C if any(flat(s))]
    sizes = [rank_mod([flat(rows) for rows in zip(*slices)], p) for slices in (R, map(transpose, R))]
    require(sizes == [n, m], "a flattening has no full rank")
    basis = read_pairs(record["basis"], n, m)
    require(rank([flat(X, Y) for X, Y in basis]) == len(basis), "the pairs of the basis are dependent")
    require(all(commutes(X, Y, C) for X, Y in basis), "a pair does not commute with the table")
    system = []
    for s, i, j in product(R, range(n), range(m)):
        row = [0] * (n * n + m * m)
        row[i * n : (i + 1) * n] = [s[k][j] for k in range(n)]
        row[n * n + j :: m] = [-x for x in s[i]]
        system.append(row)
    require(n * n + m * m - rank_mod(system, p) == len(basis), "the basis of the commutant is not complete")
    form = trace_form(basis)
    if set(argument) == {"count"}:
        require(integer(argument["count"], 0, H - 1) == rank(form), "the trace form has another rank")
        return f"the trace form of the commutant has rank {rank(form)}: there are no {H} summands (Theorem H, on paper)"
    if set(argument) == {"negative"}:
        x = [rational(y) for y in array(argument["negative"], len(form), "element")]
        value = sum(u * w * y for u, row in zip(x, form) for w, y in zip(row, x))
        require(rank(form) == H and value < 0, "a trace form of rank H and tr(x^2) < 0 are required")
        return "tr(x^2) < 0 for an element of the commutant: the heads are not all real (Theorem H, on paper)"
    keys(argument, ("idempotent", "violated"), "argument")
    ((X, Y),) = read_pairs([argument["idempotent"]], n, m)
    require(commutes(X, Y, C) and matmul(X, X) == X and matmul(Y, Y) == Y, "it is no idempotent of the commutant")
    inner = [(matmul(X, matmul(x, X)), matmul(Y, matmul(y, Y))) for x, y in basis]
    require(rank(trace_form(inner)) == 1, "the summand may be decomposable")
    sizes = tuple(int(sum(Z[i][i] for i in range(len(Z)))) for Z in (X, Y))
    if argument["violated"] is None:
        require(sizes != (v, a), "the summand has the widths of a head")
        return f"an indecomposable summand has widths (v, a) = {sizes}, which no head has (Theorem H, on paper)"
    part = Cubic({"format": "attngeom/coefficients", "version": 1, "d": c.d, "d_out": n, "t": 2, "terms": []})
    for ((k, l), s), i, j in product(zip(pairs, [matmul(X, s) for s in C]), range(n), range(m)):
        part.values[(i, 0), tuple(sorted(((k, 1), (l, 1), (j, 0))))] = s[i][j]
    return f"{check_violated(part, a, argument['violated'], QUADRICS)}, for an indecomposable part (Theorem H, paper)"

def read_pairs(value, n, m):
    require(type(value) is list and 1 <= len(value) <= n * n + m * m, "pairs (X, Y) are required")
    for pair in value: keys(pair, ("X", "Y"), "pair")
    return [(matrix(x["X"], n, n, rational), matrix(x["Y"], m, m, rational)) for x in value]
def commutes(X, Y, C): return all(matmul(X, s) == matmul(s, Y) for s in C)
def trace_form(basis): return [[sum(map(mul, flat(*x), flat(*map(transpose, y)))) for y in basis] for x in basis]

# Networks: sizes, named points, gradients mod p, and the fields of the symmetry rules.
class Network:
    """The sizes (d, d', a, v) of all layers, v None where the value map is one matrix, and what attention does."""
    def __init__(self, record, version):
        usual = {"tokens": 3, "kind": "lightning", "heads": 1, "value_width": None, "residual": False, "causal": False}
        record = {**usual, "temperature": "1", **record} if type(record) is dict and version == 1 else record
        keys(record, ("widths", "attention", "temperature", *usual), "architecture")
        widths, attention, v = record["widths"], record["attention"], record["value_width"]
        require(type(widths) is type(attention) is list and 2 <= len(widths) <= 10**4 + 1, "widths: a list is required")
        attention = attention * (len(widths) - 1) if version == len(attention) == 1 else attention
        self.widths = [integer(x, 1, 10**6, "width") for x in widths]
        attention = [integer(x, 1, 10**6, "attention") for x in array(attention, len(widths) - 1, "attention")]
        self.tokens, self.heads = integer(record["tokens"], 1, 10**9), integer(record["heads"], 1, 10**4)
        self.kind = choice(record["kind"], ("lightning", "softmax", "sigmoid"), "kind")
        self.residual, self.causal, self.tau = record["residual"], record["causal"], rational(record["temperature"])
        require(type(self.residual) is type(self.causal) is bool, "residual, causal: true or false")
        require(self.tau > 0 and (self.tau == 1 or self.kind != "lightning"), "temperature: not allowed")
        require(v is None or integer(v, 1, 10**6, "value_width"), "value_width")
        require(v or all(x % self.heads == 0 for x in widths[1:]), "heads divide no width")
        require(not self.residual or len(set(widths)) == 1, "a skip connection needs equal widths")
        values = [v if v or self.heads == 1 else e // self.heads for e in widths[1:]]
        self.layers = list(zip(widths, widths[1:], attention, values))
    def shapes(self):
        """((layer, head, letter), rows, columns) in the order of the vector of all weights."""
        for (l, (d, e, a, v)), h in product(enumerate(self.layers), range(self.heads)):
            values = [("V", e, d)] if v is None else [("V", v, d), ("O", e, v)]
            yield from (((l, h, x), rows, columns) for x, rows, columns in [("Q", a, d), ("K", a, d), *values])
    @property
    def size(self):
        return sum(self.heads * (2 * a * d + (e * d if v is None else v * (d + e))) for d, e, a, v in self.layers)
    def cost(self, tokens):  # About the products of one gradient; scores take the square of the tokens.
        return 6 * tokens * (self.size + tokens * self.heads * sum(a + (v or e) + 4 for _, e, a, v in self.layers))
    def vector(self, tensors):
        """All weights, zeros where there is no tensor."""
        every = ((tensors.get(key), rows, columns) for key, rows, columns in self.shapes())
        return [x for own, rows, columns in every for row in own or [[0] * columns] * rows for x in row]
    def reached(self):
        """How many dimensions the inputs of each layer can span, and the outputs of the last one (Lemma U)."""
        spans = [self.widths[0]]
        for _, e, _, v in self.layers:
            s, cubics = spans[-1], self.kind == "lightning"
            reach = s if v is None or (self.kind == "softmax" and self.tokens == 1) else self.heads * min(v, s)
            most = (math.comb(s + 2, 3) if self.tokens == 1 else s * math.comb(s + 1, 2)) if cubics else reach
            spans.append(e if self.residual else min(e, reach, most))
        return spans
    def smaller(self):
        """The network without hidden directions that nothing reaches or nothing reads: the same functions (Lemma U)."""
        other, widths = Network.__new__(Network), self.reached()
        vars(other).update(vars(self), widths=widths, layers=[])
        for l in reversed(range(1, len(self.layers))) if not self.residual else ():
            _, e, a, v = self.layers[l]
            values = min(v or e, widths[l], widths[l + 1])
            widths[l] = min(widths[l], self.heads * (2 * min(a, widths[l]) + values))
        widths[-1] = self.widths[-1]
        for d, e, (_, _, a, v) in zip(widths, widths[1:], self.layers):
            other.layers.append((d, e, min(a, d), v and min(v, d, e)))
        return other
    def free_attention(self):
        """What is to be said of formal attention: exponentials of scores are independent if inputs span a plane."""
        if self.kind != "lightning" and 1 in self.reached()[:-1]:
            raise Unknown("inputs that span one dimension have symmetric scores, for which no points are drawn here")
        return "" if self.kind == "lightning" else "; exponentials of scores are independent (on paper)"

class Point:
    """The residues of a name: SHA-256 of name/label/0, name/label/1, ..., four words each, those beyond are skipped."""
    def __init__(self, record, p):
        if "seed" in record:
            raise Unknown("the point comes from a NumPy seed; attngeom verify --upgrade writes a named one")
        self.name, self.p = record["point"], p
        require(type(self.name) is str and re.fullmatch(r"[!-~]{1,80}", self.name), f"point {show(self.name)}: no name")
    def draw(self, label, rows, columns):
        words, number, bound = [], 0, 2**64 // self.p * self.p
        while len(words) < rows * columns:
            digest = hashlib.sha256(f"{self.name}/{label}/{number}".encode()).digest()
            cut = (int.from_bytes(digest[i : i + 8], "big") for i in (0, 8, 16, 24))
            words.extend(word % self.p for word in cut if word < bound)
            number += 1
        return [words[i * columns : (i + 1) * columns] for i in range(rows)]
    def weights(self, net, blocks=None):
        """All tensors, zero outside of the corner blocks [d, d', a, v] of each layer."""
        found = {(l, h, x): self.draw(f"{l}.{h}.{x}", r, c) for (l, h, x), r, c in net.shapes()}
        for (l, _, x), tensor in found.items() if blocks else ():
            d, e, a, v = blocks[l]
            r, c = {"Q": (a, d), "K": (a, d), "V": (e if v is None else v, d), "O": (e, v)}[x]
            tensor[:] = [[y if i < r and j < c else 0 for j, y in enumerate(row)] for i, row in enumerate(tensor)]
        return found
    def sample(self, net, r, tokens):
        """Input X, cotangent C and formal attention P of each head of sample r."""
        X, C = (self.draw(f"{x}{r}", width, tokens) for x, width in (("X", net.widths[0]), ("C", net.widths[-1])))
        P = {}
        for l, h in product(range(len(net.layers)), range(net.heads) if net.kind != "lightning" else ()):
            own = P[l, h] = hide(net, self.draw(f"P{r}.{l}.{h}", tokens, tokens))
            for i in range(tokens) if net.kind == "softmax" else ():
                own[i][i] = (1 - sum(own[j][i] for j in range(tokens) if j != i)) % self.p
        return X, C, P

def hide(net, S):  # Zeros for j > i if causal.
    return [[x if j <= i or not net.causal else 0 for i, x in enumerate(row)] for j, row in enumerate(S)]

def gradient(net, w, sample, m, base=None, tau=Fraction(1)):
    """d<C, phi(X)>/dw as tensors mod m, by the chain rule; the scores; input and cotangent of each layer.
    Formal attention P belongs to the scores ``base``; for others, equal mod p where m = p^2, it moves by its
    derivative: P (S - sum P S) for softmax, P (1 - P) S for sigmoid, both over tau."""
    X, G, formal = sample
    passes, scores, ends, slope = [], {}, {}, tau.denominator * pow(tau.numerator, -1, m) % m
    def push(P, S):
        if net.kind == "sigmoid": return [[x * (1 - x) * s * slope % m for x, s in zip(*rows)] for rows in zip(P, S)]
        sums = [sum(map(mul, *columns)) for columns in zip(zip(*P), zip(*S))]
        return [[x * (s - total) * slope % m for x, s, total in zip(*rows, sums)] for rows in zip(P, S)]
    for l in range(len(net.layers)):
        passes.append((X, []))
        out = X if net.residual else None
        for h in range(net.heads):
            q, k, v = (matmul(w[l, h, x], X, m) for x in "QKV")
            S = scores[l, h] = matmul(transpose(k), q, m)
            P = formal[l, h] if net.kind != "lightning" else hide(net, S)
            if base is not None and net.kind != "lightning": P = add(P, push(P, add(S, base[l, h], m, -1)), m)
            mixed = matmul(v, P, m)
            y = matmul(w[l, h, "O"], mixed, m) if (l, h, "O") in w else mixed
            passes[-1][1].append((q, k, v, P, mixed))
            out = add(out, y, m) if out else y
        X = out
    found = {}
    for l in reversed(range(len(net.layers))):
        X, own = passes[l]
        ends[l], back = (X, G), G if net.residual else [[0] * len(X[0]) for _ in X]
        for h, (q, k, v, P, mixed) in enumerate(own):
            g = G
            if (l, h, "O") in w:
                found[l, h, "O"], g = matmul(G, transpose(mixed), m), matmul(transpose(w[l, h, "O"]), G, m)
            dP = matmul(transpose(v), g, m)
            dS = hide(net, push(P, dP) if net.kind != "lightning" else dP)
            moves = matmul(k, dS, m), matmul(q, transpose(dS), m), matmul(g, transpose(P), m)
            for x, moved in zip("QKV", moves):
                found[l, h, x] = matmul(moved, transpose(X), m)
                back = add(back, matmul(transpose(w[l, h, x]), moved, m), m)
        G = back
    return found, scores, ends

def fields(net, w):
    """The fields of the rules T1-T4 at w, (rule, i, j, vector) for each E = E_ij: see docs/explanation/trust.md."""
    def move(left, dual=(), right=()):
        for i, j in product(range(len(w[left[0]])), repeat=2):
            change = {key: [[0] * len(w[key][0]) for _ in w[key]] for key in (*left, *dual, *right)}
            for key in left: change[key][i] = w[key][j]
            for key in dual: change[key][j] = [-x for x in w[key][i]]
            for row, old in ((row, old) for key in right for row, old in zip(change[key], w[key])): row[j] = -old[i]
            yield (left, right), i, j, net.vector(change)
    for l, h in product(range(len(net.layers)), range(net.heads)):
        Q, K, V, O = ((l, h, x) for x in "QKVO")
        yield from move([K], [Q])
        if net.kind == "lightning": yield Q, 0, 0, net.vector({Q: w[Q], V: negative(w[V])})
        if O in w: yield from move([V], [], [O])
    for l in range(len(net.layers) - 1) if not net.residual else ():
        outer = [(l, h, "O" if (l, h, "O") in w else "V") for h in range(net.heads)]
        yield from move(outer, [], [(l + 1, h, x) for h in range(net.heads) for x in "QKV"])

def symmetry_bound(net, point):
    """N minus the rank of the fields of T1-T4 at a point mod p; each keeps the function, and two samples show it."""
    afford(net.size**2 * 10, "entries of fields")
    w, p = point.weights(net), point.p
    rows = [row for *_, row in fields(net, w)]
    for r in range(2):
        g = net.vector(gradient(net, w, point.sample(net, r, min(net.tokens, 2)), p)[0])
        require(all(sum(map(mul, row, g)) % p == 0 for row in rows), "a field of the rules T1-T4 changes the function")
    return net.size - rank_mod(rows, p)

def check_dimension(claim, witness, version):
    keys(claim, ("kind", "architecture", "dimension"), "claim")
    net, value = Network(claim["architecture"], version), integer(claim["dimension"], 0, 10**18, "dimension")
    if "theorem" in witness:
        keys(witness, ("theorem", "hypotheses"), "witness")
        require(type(witness["hypotheses"]) is list and all(type(x) is str for x in witness["hypotheses"]), "no words")
        name, (found, words) = witness["theorem"], dimension_theorem(net, witness["theorem"])
        require(found == value, f"the theorem {name} gives {found}, not {value}")
        return f"the hypotheses of {name} hold and it gives {value}; this rests on the paper proof of {words}"
    lower, upper = (keys(witness, ("lower", "upper"), "witness")[key] for key in ("lower", "upper"))
    require(type(lower) is type(upper) is dict, "lower and upper: objects are required")
    if "method" in lower:
        raise Unknown("transcripts of matrix-free proofs are rechecked by attngeom verify, with a probability of error")
    place = "seed" if "seed" in lower else "point"
    keys(lower, ("prime", place, "tokens", "samples", "support", "rows", "columns"), "lower")
    p, tokens, N = prime(lower["prime"]), integer(lower["tokens"], 1, net.tokens, "tokens"), net.size
    if value > 4000 or N > 10**6:
        raise Unknown(f"a minor of size {value} of {N} parameters is beyond what is checked here")
    rows, columns, point = lower["rows"], lower["columns"], Point(lower, p)
    bounds = integer(lower["samples"], value, 10**6, "samples"), N
    for places, bound in zip((rows, columns), bounds):
        found = {integer(x, 0, bound - 1) for x in array(places, value, "rows and columns")}
        require(len(found) == value, "rows and columns must differ")
    for layer, block in zip(net.layers, array(lower["support"], len(net.layers), "support")):
        for most, size in zip(layer, array(block, 4, "support")):
            require(size is None if most is None else integer(size, 1, most, "support"), "support: a wrong size")
    words, method = net.free_attention(), choice(upper.get("method"), ("symmetries", "count"), "upper bound by")
    afford(value * net.cost(tokens) + value**3 / 20, "products for the minor")
    if method == "symmetries":
        keys(upper, ("method", "prime", "seed" if "seed" in upper else "point"), "upper")
        bound, why = symmetry_bound(net, Point(upper, prime(upper["prime"]))), "T1-T4"
    else:
        keys(upper, ("method",), "upper")
        bound, why = symmetry_bound(net.smaller(), Point(COUNT, WORD_PRIME)), "T1-T4 on the smaller network"
        if bound > value:
            raise Unknown(f"T1-T4 give at most {bound}; {value} needs another rule of Lemma U; attngeom verify has it")
        words += "; the smaller network rests on Lemma U (on paper)"
    require(bound == value, f"the upper bound is {bound}, not {value}")
    w, minor = point.weights(net, lower["support"]), []
    for r in rows:
        g = net.vector(gradient(net, w, point.sample(net, r, tokens), p)[0])
        minor.append([g[c] for c in columns])
    require(rank_mod(minor, p) == value, f"the minor of size {value} is 0 mod {p}")
    return f"a minor of size {value} is not 0 mod {p}, and {why} give at most {value}{words}"

def dimension_theorem(net, name):
    """The value of a theorem of docs/theorems/dimension.md whose hypotheses hold, and its name on paper."""
    H, widths, last, t, layers = net.heads, net.widths, len(net.layers), net.tokens, net.layers
    plain = not net.residual and not net.causal and t >= 2
    heads = sum(H * (bounded(d, d, a) + bounded(e, d, min(d, e) if v is None else v)) for d, e, a, v in layers)
    one = H == 1 and not net.residual and all(v is None or v >= min(d, e) for d, e, _, v in layers)
    hidden, inner = widths[1:-1], [H * v if v else e for _, e, _, v in layers]
    narrow = min(widths + [H * v for _, _, _, v in layers if v])
    (d, e, a, v), first = layers[0], [i + 1 for i, x in enumerate(layers) if min(x[2], *widths[: i + 1]) == 1]
    # After attention of rank one without a mask, and for one token, lightning attention shows symmetric parts.
    seen = 0 if t == 1 else last if net.causal else (first + [last])[0]
    bottleneck = last >= 2 and plain and len(set(hidden)) == 1 and hidden[0] <= min(widths[0], widths[-1], inner[-1])
    bottleneck = bottleneck and set(inner[:-1]) == set(hidden) and all(H * a <= d for d, _, a, _ in layers[:-1])
    apart = last == 1 and plain and H >= 2 and H * a <= d and H * (v or e) <= e and (v or e) <= d
    table = {
        "softmax-network": ("softmax", one and t >= 2, virtual(net, last), "Corollary C"),
        "sigmoid-network": ("sigmoid", one and plain, virtual(net, last), "Theorem S"),
        "lightning-network": ("lightning", one, virtual(net, seen) - last, "Corollary C"),
        "residual-softmax": ("softmax", net.residual and t >= 2, heads, "Theorem E"),
        "softmax-heads": ("softmax", last == 1 and not net.residual and t >= 2, heads, "Theorem D"),
        "sigmoid-heads": ("sigmoid", t >= 2 and (net.residual or last == 1), heads, "Theorem S"),
        "softmax-bottleneck": ("softmax", bottleneck, heads - sum(x * x for x in hidden), "Theorem S4"),
        "lightning-heads": ("lightning", apart, heads - H, "Theorem H"),
        "linear-softmax": ("softmax", t == 1 and not net.residual, bounded(widths[-1], widths[0], narrow), "linearity"),
    }
    kind, holds, value, words = table[choice(name, table, "theorem")]
    require(net.kind == kind and holds, f"the hypotheses of {name} do not hold")
    return value, words

def virtual(net, seen):
    """Lemma B: the dimension of the pairs (M, L), M_i in its symmetric part from layer ``seen`` on."""
    last, widths = len(net.layers), net.widths
    r = [min(widths[: i + 1]) for i in range(last + 1)]
    tau, delta = r[last], widths[-1] * r[last - 1]
    for i in reversed(range(last)):
        alpha, rho = min(net.layers[i][2], r[i]), min(2 * net.layers[i][2], r[i])
        delta += 2 * alpha * r[i] - alpha**2 if i < seen else rho * r[i] - rho * (rho - 1) // 2
        tau = min(r[i], 2 * alpha + tau)
        delta += tau * (r[i - 1] - r[i]) if i else 0
    return delta

def bounded(rows, columns, size):  # The dimension of the matrices of bounded rank.
    return min(size, rows, columns) * (rows + columns - min(size, rows, columns))

def check_laws(claim, witness, version):
    """Moments of T1-T4 annihilate gradients and brackets, and their ranks add up to N: there is no other law."""
    keys(claim, ("kind", "architecture", "count"), "claim")
    net, count = Network(claim["architecture"], version), integer(claim["count"], 0, 10**18, "count")
    place = "seed" if "seed" in witness else "point"
    keys(witness, ("prime", place, "tokens", "samples", "gradients", "brackets"), "witness")
    p, tokens, N = prime(witness["prime"], 3), integer(witness["tokens"], 1, net.tokens, "tokens"), net.size
    samples, point, words = integer(witness["samples"], 1, 10**6, "samples"), Point(witness, p), net.free_attention()
    require(type(witness["gradients"]) is type(witness["brackets"]) is list, "lists of samples are required")
    gradients = [integer(n, 0, samples - 1) for n in witness["gradients"]]
    brackets = [[integer(n, 0, samples - 1) for n in array(pair, 2, "bracket")] for pair in witness["brackets"]]
    require(all(x % p for x in net.tau.as_integer_ratio()), "the temperature vanishes mod p")
    afford((len(gradients) + 4 * len(brackets)) * net.cost(tokens) + N**3 / 10, "products for the fields")
    require(len(gradients) + len(brackets) == N - count, f"{N - count} fields leave room for {count} laws")
    w, moments = point.weights(net), {}
    for rule, i, j, row in fields(net, w):
        key = str(rule), max(i, j), min(i, j)
        moments[key] = [x + y for x, y in zip(row, moments[key])] if key in moments else row
    require(rank_mod(list(moments.values()), p) == count, "another number of moments is independent mod p")
    at = {n: point.sample(net, n, tokens) for n in {*gradients, *(n for pair in brackets for n in pair)}}
    values = {n: net.vector(gradient(net, w, at[n], p, tau=net.tau)[0]) for n in at}
    def hessian(n, v):
        """(grad f(w + p v) - grad f(w)) / p mod p^2."""
        step = iter(v)
        moved = {key: [[x + p * next(step) for x in row] for row in w[key]] for key, _, _ in net.shapes()}
        base = gradient(net, w, at[n], p * p, tau=net.tau)
        new = net.vector(gradient(net, moved, at[n], p * p, base[1], net.tau)[0])
        return [(x - y) // p % p for x, y in zip(new, net.vector(base[0]))]
    rows = [values[n] for n in gradients]
    rows += [[x - y for x, y in zip(hessian(n, values[m]), hessian(m, values[n]))] for m, n in brackets]
    still = all(sum(map(mul, moment, row)) % p == 0 for moment in moments.values() for row in rows)
    require(still, "a moment is not constant along a field")
    require(rank_mod(rows, p) == N - count, "the fields are dependent mod p")
    return f"{len(gradients)} gradients and {len(brackets)} brackets leave room for the {count} moments alone{words}"

# Learning coefficients: pairs (2 lambda, m).
class Block:
    """A matrix of a head, a product of two factors or free: ranks over Q and the pair of Theorem A0."""
    def __init__(self, left, right=None):
        self.matrix, self.factors = matmul(left, right) if right else left, [right, left] if right else [left]
        self.rows, self.columns, self.rank = len(self.matrix), len(self.matrix[0]), rank(self.matrix)
        self.inner = right and len(right)
        self.listed = [right and rank(left), right and rank(right), self.rank]
        self.full = not right or self.rank == min(self.rows, self.columns, self.inner)
        bound = self.rank if right and self.full else self.rows + self.columns
        self.dimension = bounded(self.rows, self.columns, bound)
    def pair(self, less=0):
        """With less = 1 that of what is left beside one direction, a product that is 0."""
        P, N = self.rows - less, self.columns - less
        if self.inner is None: return Fraction(P * N), 1
        b, c, r = self.listed[0] - less, self.listed[1] - less, 0 if less else self.rank
        p, h, n = P - b, self.inner - less - b - c + r, N - c
        costs = [(h - t) * (n - t) + p * t for t in range(min(h, n) + 1)]
        return Fraction(P * c + b * N - b * c + min(costs)), costs.count(min(costs))

def plus(*pairs): return sum((x for x, _ in pairs), ZERO), 1 + sum(m - 1 for _, m in pairs)
def times(first, second): return (first[0], first[1] + second[1]) if first[0] == second[0] else min(first, second)

LEARNING = dict.fromkeys(("A1.1", "A1.2", "A1.3", "H3"), "lightning") | {"E0": "softmax or sigmoid"}
LEARNING |= dict.fromkeys(("A2", "C", "C2", "C3", "D"), "softmax") | dict.fromkeys(("A3", "S"), "sigmoid")
LEARNING |= dict.fromkeys(("B", "R", "bounds"), "lightning, softmax or sigmoid")

def check_learning(claim, witness, version):
    """Ranks over Q of K, Q, A, O, V and the formulas of docs/theorems/learning.md; for B, R, bounds ranks mod p."""
    if not {"loss", "vocabulary", "inputs"}.isdisjoint(claim): unknown(claim, witness)
    keys(claim, ("kind", "architecture", "tensors", "lambda", "multiplicity"), "claim")
    net, w, heads = Network(claim["architecture"], version), {}, {}
    afford(net.size**2, "steps for the ranks")
    factored = net.heads > 1 or net.layers[0][3] is not None
    names = [f"layers.{l}.heads.{h}.{x}" if factored else f"layers.{l}.{x}" for (l, h, x), _, _ in net.shapes()]
    keys(claim["tensors"], names, "tensors")
    for name, (key, r, c) in zip(names, net.shapes()): w[key] = matrix(claim["tensors"][name], r, c, rational)
    value, m = rational(claim["lambda"]), integer(claim["multiplicity"], 1, 10**6, "multiplicity")
    name = choice(witness.get("theorem"), LEARNING, "theorem")
    place = ("prime", "seed" if "seed" in witness else "point", "samples", "tokens") if name in "B R bounds" else ()
    keys(witness, ("theorem", "ranks", *place), "witness")
    require(net.kind in LEARNING[name], f"{LEARNING[name]} attention is required")
    for l, h in product(range(len(net.layers)), range(net.heads)):
        V, O = w[l, h, "V"], w.get((l, h, "O"))
        heads[l, h] = Block(transpose(w[l, h, "K"]), w[l, h, "Q"]), Block(O, V) if O else Block(V)
    ranks = [[*A.listed, *V.listed] for A, V in heads.values()]
    require(json.dumps(witness["ranks"]) == json.dumps(ranks), f"the ranks over Q are {show(ranks)}")
    found = by_ranks(net, name, w, heads, witness) if place else by_theorem(net, name, heads)
    require((found[0] / 2, found[1]) == (value, m), f"Theorem {name} gives lambda = {found[0] / 2}, m = {found[1]}")
    return f"the hypotheses of Theorem {name} hold and it gives {value}, {m}; this rests on its paper proof"

def by_theorem(net, name, heads):
    if name in ("C2", "C3", "E0", "H3"): return beside("deep").by_deep_theorem(net, name, heads)
    t, ((A, V), *others) = net.tokens, heads.values()
    require((name == "C" or len(net.layers) == 1) and (name in "CDS" or not others), "one layer, one head are required")
    require(t >= 2 or name == "A2" or (V.rank == 0 and name in ("A1.1", "A3")), "two tokens are required")
    both = A.pair(), V.pair()
    if name == "A1.1":
        seen = any(x + y for x, y in zip(flat(A.matrix), flat(transpose(A.matrix))))
        require(A.rank * V.rank == 0 and (t > 1 or seen), "A = 0 or V = 0 is required, for one token a form x^T A x")
        return times(*both) if A.rank == V.rank == 0 else both[A.rank != 0]
    if name in ("A1.2", "A1.3"):
        require(A.rank > 0 and V.rank > 0, "A and V must not be 0")
        forms = [next(row for row in a if any(row)) for a in (transpose(A.matrix), V.matrix)]
        aligned = A.rank == V.rank == 1 == rank(forms)
        require(aligned == (name == "A1.3"), "aligned weights have Theorem A1.3, others A1.2")
        if not aligned: return plus((Fraction(-1), 1), *both)
        return plus((2 * A.rows + V.rows - 2 + Fraction(A.rows - 1, 2), 1), A.pair(1), V.pair(1))
    if name in ("A2", "A3"): return plus(*both) if V.rank and t >= 2 else V.pair()
    if name in "DS":
        seen = []
        for A, _ in heads.values():
            require(A.matrix not in seen, "the A_h must differ (sigmoid, or two tokens: also in sign)")
            seen += [A.matrix, *([negative(A.matrix)] if t == 2 or name == "S" else [])]
        return plus(*(plus(A.pair(), V.pair()) if V.rank else V.pair() for A, V in heads.values()))
    d0, *hidden, last = net.widths
    require(net.heads == len(set(hidden)) == 1 and not net.residual and not net.causal, "equal hidden widths, one head")
    L, blind, pairs = [[Fraction(i == j) for j in range(d0)] for i in range(d0)], False, []
    for A, V in heads.values():
        if not blind:
            M = matmul(transpose(L), matmul(A.matrix, L))
            pairs.append(A.pair())
            blind = not any(x + y if t == 2 else x for x, y in zip(flat(M), flat(transpose(M))))
        L = matmul(V.matrix, L)
    require(rank(L) == hidden[0], "rank L = hidden width is required")
    return plus((Fraction(hidden[0] * (d0 + last) - hidden[0] ** 2), 1), *pairs)

def by_ranks(net, name, w, heads, witness):
    """The ranks mod p of the differential, in the products for B, else in the weights; of T2, T4 on the products.
    Softmax and sigmoid have formal attention, if 1, the inputs and the scores are independent (Lemma 1)."""
    p, samples, lightning = prime(witness["prime"]), integer(witness["samples"], 1, 10**5), net.kind == "lightning"
    tokens, point = integer(witness["tokens"], 1, net.tokens, "tokens"), Point(witness, p)
    require(all(x.denominator % p for tensor in w.values() for x in flat(tensor)), "a denominator vanishes mod p")
    afford(samples * (net.cost(tokens) + samples * (net.size + len(heads) * tokens**2) / 20), "products for the ranks")
    require(lightning or (tokens >= 2 and all(A.rank for A, _ in heads.values())), "two tokens, and no A_h = 0")
    require(all(x % p for x in net.tau.as_integer_ratio()), "the temperature vanishes mod p")
    def residues(a): return [[x.numerator * pow(x.denominator, -1, p) % p for x in row] for row in a]
    dense, fixed, tables, rows, functions = {key: residues(a) for key, a in w.items()}, set(), [], [], []
    for (l, h), (A, V) in heads.items() if name == "B" else ():
        Q, K, own, O = ((l, h, x) for x in "QKVO")
        tables += [(l, V.rows, A.rows)] if A.rank == V.rank == 0 else []
        if not A.full:
            dense[Q], dense[K] = residues(A.matrix), [[int(i == j) for j in range(A.rows)] for i in range(A.rows)]
        if not V.full: dense[own], _ = residues(V.matrix), dense.pop(O, None)
        fixed |= {Q, K} if not V.rank else {K} if not A.full else set()
        fixed |= {own, O} if not A.rank else {O} if not V.full else set()
    for r in range(samples):
        sample = point.sample(net, r, tokens)
        found, scores, ends = gradient(net, dense, sample, p, tau=net.tau)
        seen = [(i, j) for i, j in product(range(tokens), repeat=2) if j <= i or not net.causal]
        diagonal = net.kind == "softmax"  # There the scores of a column are known up to a number.
        own = [S[j][i] - diagonal * S[i][i] for S in scores.values() for i, j in seen if i != j or not diagonal]
        functions.append([1, *flat(sample[0]), *own])
        row = flat(*(found[key] for key in w if key not in fixed))
        for l, e, d in tables:
            X, G = ends[l]
            for k, s in combinations_with_replacement(range(d), 2):
                squares = [x * y for x, y in zip(X[k], X[s])]
                sums = [sum(squares[: i + 1]) if net.causal else sum(squares) for i in range(tokens)]
                row += [sum(map(mul, map(mul, sums, X[n]), G[o])) % p for n in range(d) for o in range(e)]
        rows.append(row)
    free, jacobian = lightning or rank_mod(functions, p) == len(functions[0]), rank_mod(rows, p)
    require(free, "the scores at these weights are dependent, so that attention is not free")
    if name == "R":
        if jacobian == min(symmetry_bound(each, Point(COUNT, WORD_PRIME)) for each in (net, net.smaller())):
            return Fraction(jacobian), 1
        raise Unknown(f"the rank mod p is {jacobian}; that it is the largest needs a rule of Lemma U beyond T1-T4")
    values = {key: [residues(x.matrix) for x in own] for key, own in heads.items()}
    zero = {key: [[[0] * len(a[0]) for _ in a] for a in own] for key, own in values.items()}
    moves = [{}, *({key: [A, negative(V)]} for key, (A, V) in values.items() if lightning)]
    for l, width in enumerate(() if net.residual else net.widths[1:-1]):
        for i, j in product(range(width), repeat=2):
            E, change = [[int((r, c) == (i, j)) for c in range(width)] for r in range(width)], {}
            for key, (A, V) in values.items():
                if key[0] == l: change[key] = [zero[key][0], matmul(E, V)]
                elif key[0] == l + 1:
                    change[key] = [*map(negative, (add(matmul(transpose(E), A), matmul(A, E), p), matmul(V, E)))]
            moves.append(change)
    action = rank_mod([[0, *flat(*(own for key, pair in heads.items() for own, other in zip(move.get(key, zero[key]),
                       pair[::-1]) if other.rank))] for move in moves], p)
    parts, total = [], 0
    for A, V in heads.values():
        alone = times(A.pair(), V.pair()) if A.rank == V.rank == 0 else A.pair() if V.rank else V.pair()
        parts += [A.pair(), V.pair()] if A.rank and V.rank else [alone]
        dead = V.rows * A.rows**2 * (A.rows + 1) // 2 if A.rank == V.rank == 0 else 0
        total += dead + (A.dimension if V.rank else 0) + (V.dimension if A.rank else 0)
    value, m = plus(*parts)
    meets = value - action == jacobian and m == 1 if name == "bounds" else jacobian + action == total
    require(meets, f"the ranks {jacobian} and {action} do not meet what Theorem {name} needs")
    return value - action, m

# Files. A claim of another kind is a row of KINDS: a function of claim, witness and version that returns its reason.
def beside(name):
    """Another file, which lies beside this one and uses it: for traced programs, and for theorems of later days."""
    sys.path.append(__file__[: -len("attngeom_check.py")] or ".")
    sys.modules.setdefault("attngeom_check", sys.modules[__name__])
    try: return __import__(f"attngeom_check_{name}")
    except ImportError: raise Unknown(f"this claim needs attngeom_check_{name}.py beside this file") from None
KINDS = {"layer": check_layer, "heads": check_heads, "dimension": check_dimension, "laws": check_laws}
KINDS |= {"learning-coefficient": check_learning, "layers": lambda *own: beside("deep").check_layers(*own[:2])}
KINDS |= {"network": lambda *own: beside("programs").check_program(*own[:2])}
KINDS |= dict.fromkeys(("functions", "uniqueness", "ideal"), unknown)

def unique(pairs):
    require(len(dict(pairs)) == len(pairs), "a key is repeated")
    return dict(pairs)

def check(text):
    """The reason why the certificate in a JSON text proves its claim; Invalid or Unknown."""
    try:
        record = json.loads(text, object_pairs_hook=unique, parse_constant=lambda text: require(False, f"{text} found"))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"no JSON: {str(error)[:80]}") from None
    keys(record, ("format", "version", "claim", "witness", "provenance"), "certificate")
    require(record["format"] == "attngeom/certificate", "another format")
    version = integer(record["version"], 1, VERSION, "version")
    claim, witness, provenance = (record[key] for key in ("claim", "witness", "provenance"))
    require(type(claim) is type(witness) is type(provenance) is dict, "three objects are required")
    content = {"claim": claim, "witness": witness, "provenance": {k: x for k, x in provenance.items() if k != "sha256"}}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    require(provenance.get("sha256") == digest, "the digest does not match")
    return KINDS[choice(claim.get("kind"), KINDS, "kind")](claim, witness, version)

def main(paths=None):
    paths, worst = sys.argv[1:] if paths is None else paths, 0
    if not paths or {"-h", "--help"} & set(paths): return print(__doc__) or (0 if paths else 2)
    sys.set_int_max_str_digits(100_100)
    for path in paths:
        try:
            with open(path, "rb") as stream: text = stream.read(MAX_BYTES + 1)
            afford(MAX_WORK + 1 if len(text) > MAX_BYTES else 0, "bytes and more")
            word, reason = "valid", check(text.decode())
        except (Invalid, UnicodeDecodeError) as error:
            word, reason = "invalid", error
        except (Unknown, MemoryError, OSError, RecursionError) as error:
            word, reason = "unknown", error
        worst = {"valid": worst, "invalid": 1, "unknown": worst or 2}[word]
        print(f"{path}: {word}: {reason}")
    return worst

if __name__ == "__main__": sys.exit(main())
