"""Check certificates of maps of several layers, and of learning coefficients of deep networks and of lightning heads.

It is loaded by attngeom_check.py, beside which it lies, takes its strict readers and ranks from there, and needs
nothing else. Written from docs/theorems/depth.md and docs/theorems/learning.md. A network of l lightning layers of one
head has the function phi = L Z_l, Z_0 = X, column k of Z_i the sum over j of z_j (z_j^T M_i z_k), over j <= k with a
mask. Polynomials are {exponents: rational}, of the entries of X column by column.
"""

import math
from fractions import Fraction
from itertools import combinations, product
from operator import add as plus_each

from attngeom_check import ZERO, Invalid, Unknown, afford, array, choice, flat, indices, integer, keys, matmul, matrix
from attngeom_check import plus, rank, rational, require, transpose

MAX_LAYERS, MAX_VARIABLES, MAX_OUTPUTS, MAX_READ, LINES = 4, 64, 4096, 300_000, 6

# Polynomials.
def multiply(f, g):
    total = {}
    for (m, x), (n, y) in product(f.items(), g.items()):
        place = tuple(map(plus_each, m, n))
        total[place] = total.get(place, ZERO) + x * y
    return {m: x for m, x in total.items() if x}

def combine(*terms):
    """The sum of number times polynomial."""
    total = {}
    for c, f in terms:
        for m, x in f.items(): total[m] = total.get(m, ZERO) + c * x
    return {m: x for m, x in total.items() if x}

def derive(f, k): return {(*m[:k], m[k] - 1, *m[k + 1 :]): x * m[k] for m, x in f.items() if m[k]}
def parallel(first, second):
    """Whether two lists of polynomials are proportional over the rational functions."""
    pairs = combinations(zip(first, second), 2)
    return not any(combine((1, multiply(a, d)), (-1, multiply(c, b))) for (a, b), (c, d) in pairs)

class Map:
    """The polynomials of a claim, and the relations of docs/theorems/depth.md that a network satisfies."""
    def __init__(self, claim):
        self.layers, self.causal = integer(claim["layers"], 1, MAX_LAYERS, "layers"), claim["causal"]
        record = claim["coefficients"]
        require(type(self.causal) is bool, "causal: true or false")
        keys(record, ("format", "version", "degree", "d", "d_out", "t", "terms"), "coefficients")
        require(record["format"] == "attngeom/coefficients" and type(record["terms"]) is list, "another format")
        integer(record["version"], 1, 1, "version")
        self.degree = integer(record["degree"], 3**self.layers, 3**self.layers, "degree")
        self.d, self.d_out, self.t = (integer(record[key], 1, 10**6, key) for key in ("d", "d_out", "t"))
        sizes = self.d * self.t, self.d_out * self.t, len(record["terms"])
        if any(x > y for x, y in zip(sizes, (MAX_VARIABLES, MAX_OUTPUTS, MAX_READ))):
            raise Unknown(f"{sizes} variables, outputs and terms are beyond what is read here")
        self.outputs = [[{} for _ in range(self.t)] for _ in range(self.d_out)]
        for term in record["terms"]:
            i, j = self.entry(keys(term, ("output", "monomial", "value"), "term")["output"], self.d_out)
            entries = [self.entry(x, self.d) for x in array(term["monomial"], self.degree, "monomial")]
            place = tuple(entries.count((r, c)) for c in range(self.t) for r in range(self.d))
            value = rational(term["value"])
            require(value != 0 and place not in self.outputs[i][j], "a term is 0 or repeated")
            self.outputs[i][j][place] = value
    def entry(self, value, rows):
        row, column = array(value, 2, "[row, column]")
        return integer(row, 0, rows - 1), integer(column, 0, self.t - 1)
    def layer(self, Z, M, multiply, combine):
        """The next Z, for numbers or polynomials: their products and sums are given."""
        columns = transpose(Z)
        read = [[combine(*((M[r][s], column[s]) for s in range(self.d))) for r in range(self.d)] for column in columns]
        result = []
        for k, own in enumerate(read):
            seen = columns[: k + 1] if self.causal else columns
            scores = [combine(*((1, multiply(x, y)) for x, y in zip(column, own))) for column in seen]
            result.append([combine(*((1, multiply(x[r], s)) for x, s in zip(seen, scores))) for r in range(self.d)])
        return transpose(result)
    def realizable(self, data):
        """M_1, ..., M_l and L expand to all coefficients."""
        keys(data, ("attention", "values"), "witness")
        n = self.d * self.t
        sizes = [math.comb(n + 3**i - 1, 3**i) for i in range(self.layers)]
        twice = [math.comb(n + 2 * 3**i - 1, 2 * 3**i) for i in range(self.layers)]
        afford(sum(x * y for x, y in zip(sizes, twice)) * n * self.t * 20, "products of rationals")
        Z = [[{tuple(int(k == c * self.d + r) for k in range(n)): Fraction(1)} for c in range(self.t)]
             for r in range(self.d)]
        for rows in array(data["attention"], self.layers, "attention"):
            Z = self.layer(Z, matrix(rows, self.d, self.d, rational), multiply, combine)
        L = matrix(data["values"], self.d_out, self.d, rational)
        values = [[combine(*zip(row, column)) for column in zip(*Z)] for row in L]
        require(values == self.outputs, "the weights expand to another map")
        return f"the weights of {self.layers} layers expand to all coefficients"
    def output(self, data):
        i, j = self.entry(data["output"], self.d_out)
        return i, j, self.outputs[i][j]
    def coefficient(self, f, data, variables):
        """The named coefficient, which must be what the data say, and not 0; its exponents."""
        place = tuple(integer(e, 0, 2 * self.degree) for e in array(data["exponents"], variables, "exponents"))
        value = f.get(place, ZERO)
        require(rational(data["value"]) == value != 0, f"the coefficient is {str(value)[:40]}; not as claimed, or 0")
        return place
    def masked(self, data):
        """T1: with a mask no later token is seen."""
        require(self.causal, "without mask every token is seen")
        i, j, f = self.output(keys(data, ("output", "exponents", "value"), "masked"))
        place = self.coefficient(f, data, self.d * self.t)
        require(any(place[(j + 1) * self.d :]), "no later token occurs")
        return f"output ({i}, {j}) depends on a later token"
    def parity(self, data):
        """T1: phi(X R) = phi(X) R for R = diag(+-1), so column j is odd in token j and even in the others."""
        require(not self.causal, "parity holds without mask")
        i, j, f = self.output(keys(data, ("output", "exponents", "value"), "parity"))
        place = self.coefficient(f, data, self.d * self.t)
        degrees = [sum(place[k * self.d : (k + 1) * self.d]) for k in range(self.t)]
        require(any(e % 2 != (k == j) for k, e in enumerate(degrees)), "the degrees in the tokens are as they must be")
        return f"a term of output ({i}, {j}) has a parity that no network has"
    def rotation(self, data):
        """T1: the derivation x_k -> x_l, x_l -> -x_k maps column k to column l, l to minus k, and others to 0."""
        require(not self.causal, "rotations act without mask")
        k, l = indices(keys(data, ("tokens", "output", "exponents", "value"), "rotation")["tokens"], 2, self.t)
        (i, j, f), d, moved = self.output(data), self.d, []
        for r in range(d):
            for own, other, sign in ((k, l, 1), (l, k, -1)):
                x = {tuple(int(n == other * d + r) for n in range(d * self.t)): Fraction(1)}
                moved.append((sign, multiply(x, derive(f, own * d + r))))
        expected = {k: (-1, self.outputs[i][l]), l: (1, self.outputs[i][k])}.get(j, (0, {}))
        self.coefficient(combine(*moved, expected), data, d * self.t)
        return f"rotations of tokens {k} and {l} are not followed by the outputs"
    def forms(self):
        """phi(x, 0, ..., 0) in its first column: L x times the product of the q_i to the powers 3^(l - i) (T2)."""
        return [{m[: self.d]: x for m, x in row[0].items() if not any(m[self.d :])} for row in self.outputs]
    def factors(self, data):
        """T2 on a line, where networks are networks with d = 2: restrictions of the forms have other multiplicities."""
        integer(data, self.layers, self.layers, "factors")
        forms = [f for f in self.forms() if f]
        require(forms, "the forms of one token are all zero")
        for number in range(LINES):
            ends = [[(7 * number + 3 * k * k + 5 * k * i + i) % 23 - 11 for k in range(self.d)] for i in (1, 2)]
            lists = [on_line(f, *ends) for f in forms]
            if any(map(any, lists)) and self.refutes([trim(f) for f in lists if any(f)]):
                return "the forms of one token do not factor into a vector of linear forms and quadrics to powers of 3"
        raise Invalid(f"on {LINES} lines the forms of one token have the multiplicities of a network")
    def refutes(self, lists):
        """Whether binary forms of degree D, given by polynomials in one variable, are no L x times powers of q_i."""
        divisor, infinity = [], min(self.degree + 1 - len(f) for f in lists)
        for f in lists: divisor = gcd(divisor, f)
        sizes = multiplicities(divisor)
        if infinity: sizes[infinity] = sizes.get(infinity, 0) + 1
        total = sum(e * size for e, size in sizes.items())
        if total < self.degree: return total != self.degree - 1 or not self.digits(sizes.items())
        # Rows that are proportional: one linear factor of some multiplicity is that of the values.
        return not any(self.digits([*sizes.items(), (e, -1), (e - 1, 1)]) for e in sizes)
    def digits(self, listed):
        """Whether the sum of size times digit of e is 2 at each of l places in base 3, and no digit is left."""
        sums = [sum(size * (e // 3**i % 3) for e, size in listed) for i in range(self.layers + 1)]
        return sums == [2] * self.layers + [0]
    def linear_part(self):
        """d phi_k / d x_k at x_k = 0, one other token y, all others 0: k = 0, or with a mask k = 1."""
        require(self.t >= 2, "two tokens are required")
        d, (own, other), table = self.d, (1, 0) if self.causal else (0, 1), []
        for row in self.outputs:
            parts = [derive(row[own], own * d + m) for m in range(d)]
            table.append([{m[other * d : (other + 1) * d]: x for m, x in f.items()
                           if sum(m[other * d : (other + 1) * d]) == sum(m)} for f in parts])
        return table
    def minor(self, data):
        """T3: this part has rank one."""
        (a, b), (c, e) = (indices(keys(data, ("rows", "columns", "exponents", "value"), "minor")[key], 2, size)
                          for key, size in (("rows", self.d_out), ("columns", self.d)))
        T = self.linear_part()
        afford(sum(len(T[i][j]) for i in (a, b) for j in (c, e)) ** 2 * 40, "products")
        self.coefficient(combine((1, multiply(T[a][c], T[b][e])), (-1, multiply(T[a][e], T[b][c]))), data, self.d)
        return "a 2-minor of the part linear in one token is not 0"
    def linear(self, data):
        """T4: M_1 and L are determined up to scale, and the linear equations for M_2 have no solution."""
        require(self.layers == 2, "two layers are required")
        keys(data, ("first", "values", "inputs"), "linear")
        M, L = matrix(data["first"], self.d, self.d, rational), matrix(data["values"], self.d_out, self.d, rational)
        require(rank(M) >= 2 and rank(L) >= 2, "M_1 and L of rank at least two are required")
        def form(row): return combine(*((x, {tuple(int(k == r) for k in range(self.d)): Fraction(1)})
                                        for r, x in enumerate(row)))
        rows = [row for row in self.linear_part() if any(row)]
        require(rows, "the part linear in one token is zero")
        require(all(parallel(row, [form(column) for column in zip(*M)]) for row in rows), "M_1 is another one")
        forms = self.forms()
        require(any(forms) and parallel(forms, [form(row) for row in L]), "L is not that of the forms of one token")
        inputs, system = data["inputs"], []
        require(type(inputs) is list and len(inputs) <= 10**4, "inputs: a list is required")
        afford(len(inputs) * self.d_out * self.t * self.d**4 * 100, "products of rationals")
        for X in (matrix(x, self.d, self.t, rational) for x in inputs):
            require(all(abs(x) <= 10**6 for x in flat(X)), "an input is too large")
            Z = self.layer(X, M, lambda x, y: x * y, lambda *terms: sum((c * x for c, x in terms), ZERO))
            at = [x for column in zip(*X) for x in column]
            for i, k in product(range(self.d_out), range(self.t)):
                seen = [row[: k + 1] if self.causal else row for row in Z]
                left = transpose(matmul(seen, matmul(transpose(seen), transpose([L[i]]))))[0]
                value = sum((x * math.prod(map(pow, at, m)) for m, x in self.outputs[i][k].items()), ZERO)
                system.append([*(x * row[k] for x in left for row in Z), value])
        require(system and rank(system) > rank([row[:-1] for row in system]), "the equations for M_2 have a solution")
        return "M_1 and L are determined up to scale, and the linear equations for M_2 have no solution"

def on_line(f, p, r):
    """f(p + s r) as a list of coefficients of powers of s."""
    total = [ZERO] * (max(map(sum, f)) + 1)
    for m, x in f.items():
        part = [x]
        for a, b in ((a, b) for e, a, b in zip(m, p, r) for _ in range(e)):
            part = [a * u + b * v for u, v in zip([*part, ZERO], [ZERO, *part])]
        total = list(map(plus_each, total, part))
    return total

def trim(f):
    while f and not f[-1]: f = f[:-1]
    return f

def divide(f, g):
    """Quotient and remainder."""
    f, quotient = list(f), [ZERO] * max(len(f) - len(g) + 1, 0)
    for k in reversed(range(len(quotient))):
        quotient[k] = f[k + len(g) - 1] / g[-1]
        for i, x in enumerate(g): f[k + i] -= quotient[k] * x
    return quotient, trim(f[: len(g) - 1])

def gcd(f, g):
    while g:
        rest = divide(f, g)[1] if len(g) > 1 else []
        f, g = g, [x / rest[-1] for x in rest]
    return f

def multiplicities(f):
    """{e: the degree of the product of all factors of multiplicity e}: the greatest common divisor with the derivative
    has multiplicities that are less by one."""
    degrees = [len(f) - 1]
    while len(f) > 1:
        f = gcd(f, [k * x for k, x in enumerate(f)][1:])
        degrees.append(len(f) - 1)
    drops = [x - y for x, y in zip(degrees, degrees[1:])] + [0]
    return {e: x - y for e, (x, y) in enumerate(zip(drops, drops[1:]), 1) if x > y}

def check_layers(claim, witness):
    """The reason why l layers of one head, of any widths, compute a map, or do not."""
    keys(claim, ("kind", "verdict", "layers", "causal", "coefficients"), "claim")
    verdict, own = choice(claim["verdict"], ("realizable", "not_realizable"), "verdict"), Map(claim)
    if verdict == "realizable": return own.realizable(witness)
    require(len(witness) == 1, "one relation is required")
    relations = {x.__name__: x for x in (own.masked, own.parity, own.rotation, own.factors, own.minor, own.linear)}
    name = choice(*witness, relations, "relation")
    return f"{relations[name](witness[name])}: no network has this (depth.md, on paper)"

# Theorems of docs/theorems/learning.md: pairs (2 lambda, m).
def by_deep_theorem(net, name, heads):
    pairs, plain = list(heads.values()), net.heads == 1 and not net.residual and not net.causal
    if name == "C3" and net.tokens == 1 and not net.residual: return product_pair(net, pairs)
    require(net.tokens >= 2, "two tokens are required")
    if name == "H3": return lightning_heads(net, pairs)
    if name == "E0":
        require(net.residual and all(V.rank == 0 for _, V in pairs), "a skip connection and values 0 are required")
        signs = (1, -1) if net.kind == "sigmoid" or net.tokens == 2 else (1,)
        listed = {tuple(sign * x for x in flat(A.matrix)) for A, _ in pairs for sign in signs}
        zeros = sum(A.rank == 0 for A, _ in pairs)
        require(len(listed) + zeros * (len(signs) - 1) == len(pairs) * len(signs) and zeros < 2, "the A_h must differ")
        return plus(*(V.pair() for _, V in pairs))
    require(net.heads == 1 and not net.residual and len(pairs) >= 2, "two layers of one head, no skip, are required")
    widths, L, M = net.widths, [[[Fraction(i == j) for j in range(net.widths[0])] for i in range(net.widths[0])]], []
    for A, V in pairs:
        M.append(matmul(transpose(L[-1]), matmul(A.matrix, L[-1])))
        L.append(matmul(V.matrix, L[-1]))
    total, values = rank(L[-1]), [V for _, V in pairs]
    if name == "C3" and total == 0: return product_pair(net, pairs)
    require(total > 0 and plain, "L must not be zero, and nothing masked")
    blind = [not any(x + y if net.tokens == 2 else x for x, y in zip(flat(m), flat(transpose(m)))) for m in M[:-1]]
    seen = [*blind, True].index(True) + 1
    attention = [A.pair() for A, _ in pairs[:seen]]
    if name == "C3":
        require(seen == 1, "a blind first layer is required")
        return plus(*attention, product_pair(net, pairs))
    delta = widths[1]
    require(set(widths[1:-1]) == {delta} and rank(L[-2]) == delta, "equal hidden widths and values of this rank")
    require(values[-1].inner is None, "one value matrix in the last layer is required")
    shown = rank([*L[-1], *(row for m in M[1:seen] for row in (*m, *transpose(m)))])
    return plus((Fraction(delta * widths[-1] + shown * (widths[0] - delta)), 1), *attention)

def product_pair(net, pairs):
    """Theorem P: the pair of the product of all value factors, those of the heads of a layer beside each other."""
    factors, count = [], {}
    for l in range(len(net.layers)):
        own = [V.factors for _, V in pairs[l * net.heads : (l + 1) * net.heads]]
        factors.append([row for f in own for row in f[0]])
        if len(own[0]) == 2: factors.append([[x for row in rows for x in row] for rows in zip(*(f[1] for f in own))])
    n, r = len(factors), {(k + 1, k + 1): len(F) for k, F in enumerate(factors)} | {(0, 0): len(factors[0][0])}
    if n > 10: raise Unknown(f"a product of {n} matrices is beyond what is put in order here")
    for b in range(1, n + 1):
        P = factors[b - 1]
        for a in range(b - 1, -1, -1): r[a, b] = rank(P := P if a == b - 1 else matmul(P, factors[a]))
    for a, b in r: count[a, b] = r[a, b] - r.get((a - 1, b), 0) - r.get((a, b + 1), 0) + r.get((a - 1, b + 1), 0)
    full = count.pop((0, n))
    total, nodes, groups = full * (r[0, 0] + r[n, n] - full), [J for J in count if count[J]], []
    def paths(path, T):
        """All ways from the end of a path to T, each interval following the one before."""
        after = [K for K in nodes if path[-1][0] < K[0] <= path[-1][1] + 1 <= K[1]]
        longer = [way for K in after if K[1] < n for way in paths([*path, K], T)]
        return [[*path, T], *longer] if T in after else longer
    for S, T in product([J for J in nodes if J[0] == 0], [J for J in nodes if J[1] == n]):
        if T[0] <= S[1] + 1: total += count[S] * count[T]
        for path in paths([S], T) if T[0] > S[1] + 1 else ():
            near = [group for group in groups if any(set(path) & set(other) for other in group)]
            groups = [group for group in groups if group not in near] + [[path, *(x for group in near for x in group)]]
    value = [(Fraction(total), 1)]
    for group in groups:
        rows = [set(row) for row in zip(*group)]
        is_chain = len(set(map(len, group))) == 1 and len(group) == math.prod(map(len, rows))
        require(is_chain, "the intervals between two ends are not in chains")
        value.append(chain([sum(count[J] for J in row) for row in rows]))
    return plus(*value)

def chain(widths):
    """The pair of Aoyagi (2024) for a product of matrices at the origin."""
    rest = sorted(widths)
    for n in range(2, len(rest) + 1):
        own, total, l = rest[:n], sum(rest[:n]), n - 1
        # The set of the least sizes with every size below the mean of the sum over l, and every other one not below.
        if own[-1] * l < total and all(x * l >= total for x in rest[n:]):
            a = total - (-(-total // l) - 1) * l
            value = Fraction(a * (l - a), 2 * l) - Fraction((l - 1) * total * total, 2 * l)
            return value + sum(x * y for x, y in combinations(own, 2)), a * (l - a) + 1
    raise Invalid("no set of sizes fits")

def lightning_heads(net, pairs):
    """Theorem H3: outputs and queries of the heads are independent, and no pair of heads mixes to first order."""
    require(len(net.layers) == 1 and net.heads >= 2, "one layer of two heads or more is required")
    require(all(A.rank or V.rank for A, V in pairs), "a head without A and V is not covered")
    for listed, own in (([row for _, V in pairs for row in transpose(V.matrix)], [V for _, V in pairs]),
                        ([row for A, _ in pairs for row in A.matrix], [A for A, _ in pairs])):
        require(rank(listed) == sum(x.rank for x in own), "outputs or queries of the heads are dependent")
    def joined(*rows): return rank([row for part in rows for row in part])
    for (g, (A, V)), (h, (B, W)) in product(enumerate(pairs), repeat=2):
        if not V.rank or not B.rank: continue
        aligned = V.rank == B.rank == 1 == joined(V.matrix, transpose(B.matrix))
        if g == h: require(not aligned, "a head is aligned")
        elif aligned:
            apart = joined(W.matrix, transpose(A.matrix)) == W.rank + A.rank
            require(W.full and A.full and apart, "two heads exchange a direction")
        else:
            outside = W.full and joined(W.matrix, V.matrix) > W.rank
            outside = outside or (A.full and joined(transpose(A.matrix), transpose(B.matrix)) > A.rank)
            require(outside, "two heads mix to first order")
    both = [plus(A.pair(), V.pair()) if A.rank and V.rank else A.pair() if V.rank else V.pair() for A, V in pairs]
    return plus((Fraction(-sum(1 for A, V in pairs if A.rank and V.rank)), 1), *both)
