"""The script that runs an estimator over a calibration suite, as text: it needs torch, and devinterp if asked for."""

SCRIPT = '''"""Run an estimator of learning coefficients over the points beside this file: python run.py --help.

Each point has a proven lambda. An estimate passes if it lies within three standard errors over the chains, or within
the tolerance, and if its error tells lambda from half the rank of the Hessian; for multiplicity m > 1 the volume has a
logarithm, so that it may lie below lambda by up to 2 (m - 1)/log(n beta). Unadjusted steps of finite size give too much
in quadratic directions, by an amount that is known (step_bias); it is shown, and taken away from the estimate.
"""
import argparse, importlib.util, json, math, os, pathlib, sys, tempfile
from fractions import Fraction
# Bars of progress, one for each chain, would hide the table; this is read when torch is imported.
os.environ.setdefault("TQDM_DISABLE", "1")
import torch

HERE = pathlib.Path(__file__).parent

def load(folder):
    spec = importlib.util.spec_from_file_location(f"point_{folder.name.replace('-', '_')}", folder / "network.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def start(module, given, args):
    """The network, the inputs, the outputs of the truth, and the temperature with a step that is stable there."""
    torch.manual_seed(args.seed)
    network = module.Network()
    X = module.sample_inputs(args.inputs)
    beta = args.inverse_temperature or given["inverse_temperature"]
    step = given["step"] * given["inverse_temperature"] / beta * args.step
    return network, X, network(X).detach(), beta, step

def curvatures(network, X):
    """Eigenvalues of the Hessian of K at the centre, E J^T J, at the inputs of the chains."""
    from torch.func import functional_call, jacfwd
    centre = {name: p.detach() for name, p in network.named_parameters()}
    J = jacfwd(lambda w: functional_call(network, w, (X,)).flatten())(centre)
    J = torch.cat([part.flatten(start_dim=1) for part in J.values()], dim=1)
    return torch.linalg.eigvalsh(J.T @ J / len(X)).clamp(min=0).tolist()

def step_bias(curvatures, beta, step, pull):
    """What w -> w - step/2 (beta h + pull) w + sqrt(step) noise adds to n beta (mean of h w^2/2), over all h.

    The variance of this chain is 1/((beta h + pull) (1 - x)), x = step (beta h + pull)/4; for x >= 1 there is none.
    """
    total = 0.0
    for h in curvatures:
        x = step * (beta * h + pull) / 4
        total += 0.5 * beta * h / (beta * h + pull) * x / (1 - x) if x < 1 else math.inf
    return total

def langevin(module, given, args):
    """Unadjusted Langevin chains on the whole sample, all chains at once; n beta (mean K) of each after burn-in."""
    from torch.func import functional_call, grad, vmap
    network, X, Y, beta, step = start(module, given, args)
    centre = {name: p.detach() for name, p in network.named_parameters()}
    chains = {name: p.repeat(args.chains, *[1] * p.dim()) for name, p in centre.items()}
    def K(w): return 0.5 * ((functional_call(network, w, (X,)) - Y) ** 2).sum(dim=(1, 2)).mean()
    slopes, values, pull = vmap(grad(K)), vmap(K), given["localization"]
    total, count = torch.zeros(args.chains, dtype=torch.float64), 0
    for number in range(args.steps):
        g = slopes(chains)
        for name, w in chains.items():
            drift = beta * g[name] + pull * (w - centre[name])
            chains[name] = w - 0.5 * step * drift + math.sqrt(step) * torch.randn_like(w)
        if number >= args.steps // 2 and number % 10 == 0:
            total, count = total + values(chains), count + 1
    return beta * total / count, ""

def devinterp(module, given, args):
    """devinterp 2: its data set has one row, the whole sample, whose loss is K; n beta (mean K) after burn-in.

    Its own average, llc(), counts the burn-in too, and leaves out the steps of chains that failed; it is a note.
    """
    from devinterp.slt.llc import llc
    network, X, Y, beta, step = start(module, given, args)
    def loss(model, numbers):
        return 0.5 * ((model(X) - Y) ** 2).sum(dim=(1, 2)).mean() * torch.ones(len(numbers), 1, dtype=X.dtype)
    class OneRow(torch.utils.data.Dataset):
        def __len__(self): return 1
        def __getitem__(self, number): return {"input_ids": torch.tensor([number, 0])}
    # Losses are written in pieces of 50 steps if there are as many draws; the draws themselves observe nothing.
    between = max(1, args.steps // 100)
    burn_in = args.steps - 50 * between
    if burn_in < 0:
        raise SystemExit(f"--steps {args.steps} given; devinterp needs 100 or more here")
    with tempfile.TemporaryDirectory() as folder:
        answer = llc(
            network, OneRow(), {}, lr=step, n_beta=beta, loss_fn=loss, localization=given["localization"],
            num_chains=args.chains, num_draws=50, num_steps_bw_draws=between, num_burnin_steps=burn_in, batch_size=1,
            num_init_loss_batches=1, init_seed=args.seed, device="cpu", output_path=pathlib.Path(folder) / "samples",
        )
        trace = torch.tensor(answer["loss_trace"].values, dtype=torch.float64)
        own, first = float(answer["llc_mean"]), float(answer["init_loss"])
    if trace.shape != (args.chains, args.steps):
        raise SystemExit(f"devinterp gave losses of shape {tuple(trace.shape)}; {args.chains} x {args.steps} expected")
    return beta * (trace[:, burn_in:].mean(dim=1) - first), f"llc() with burn-in {own:.3f}"

ESTIMATORS = {"langevin": langevin, "devinterp": devinterp}

def judge(values, point, beta, tolerance):
    """The mean over the chains, its standard error, and the verdict."""
    value, m = Fraction(point["lambda"]), point["multiplicity"]
    mean, error = values.mean().item(), values.std().item() / math.sqrt(len(values))
    if not math.isfinite(mean):
        return mean, error, "FAIL: a chain left the finite numbers"
    # n beta times the mean of K is lambda - (m - 1) / (log n beta + c); c depends on the prior, and is at least
    # -log(n beta) / 2 here.
    least, slack = float(value) - 2 * (m - 1) / math.log(beta), tolerance * float(value)
    gap = abs(float(value - Fraction(point["half_hessian_rank"])))
    if 3 * error > (gap / 2 if gap else 2 * slack):
        return mean, error, "too noisy to tell lambda from half the rank" if gap else "too noisy"
    slack = max(slack, 3 * error)
    return mean, error, "pass" if least - slack <= mean <= float(value) + slack else "FAIL"

def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="langevin")
    parser.add_argument("--chains", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20000, help="of each chain; the first half is burn-in")
    parser.add_argument("--inputs", type=int, default=256)
    parser.add_argument("--inverse-temperature", type=float, help="n beta, in place of the suggested one")
    parser.add_argument("--step", type=float, default=1.0, help="times the suggested step")
    parser.add_argument("--tolerance", type=float, default=0.05, help="as a share of lambda")
    parser.add_argument("--only", help="one point, by its folder")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.chains < 40:
        parser.error("at least 40 chains are required for errors that mean something")
    points = json.loads((HERE / "suite.json").read_text())["points"]
    if args.only and args.only not in {point["folder"] for point in points}:
        parser.error(f"--only {args.only} given; one of {', '.join(point['folder'] for point in points)} is required")
    failed = 0
    print("point                lambda  m  half rank  half weights      bias  estimate    error  verdict")
    for point in points:
        if args.only and point["folder"] != args.only:
            continue
        given = point["suggested"]
        module = load(HERE / point["folder"])
        values, note = ESTIMATORS[args.estimator](module, given, args)
        network, X, _, beta, step = start(module, given, args)
        bias = step_bias(curvatures(network, X), beta, step, given["localization"])
        mean, error, verdict = judge(values - bias, point, beta, args.tolerance)
        failed += verdict != "pass"
        numbers = f"{point['lambda']:>6} {point['multiplicity']:2} {point['half_hessian_rank']:>10}"
        numbers += f" {point['half_parameters']:>13} {bias:9.3f} {mean:9.3f} {error:8.3f}"
        print(f"{point['folder']:20} {numbers}  {verdict}{note and f' ({note})'}", flush=True)
    return 1 if failed else 0

if __name__ == "__main__":
    sys.exit(main())
'''
