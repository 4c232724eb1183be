"""The script that runs an estimator over a calibration suite, as text: it needs torch, and devinterp if asked for."""

SCRIPT = '''"""Run an estimator of learning coefficients over the points beside this file: python run.py --help.

Each point has a proven lambda. An estimate passes if it lies within three standard errors over the chains, or within
the tolerance, and if its error tells lambda from half the rank of the Hessian; for multiplicity m the volume has a
logarithm, so that (m - 1)/log(n beta) is taken into account.
"""
import argparse, importlib.util, json, math, pathlib, sys
from fractions import Fraction
import torch

HERE = pathlib.Path(__file__).parent

def load(folder):
    spec = importlib.util.spec_from_file_location(f"point_{folder.name.replace('-', '_')}", folder / "network.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def langevin(module, given, args):
    """Unadjusted Langevin chains on the whole sample, all chains at once; n beta (mean K - K at the point) of each."""
    from torch.func import functional_call, grad, vmap
    torch.manual_seed(args.seed)
    truth, network = module.Network(), module.Network()
    X = module.sample_inputs(args.inputs)
    Y = truth(X).detach()
    start = {name: p.detach() for name, p in network.named_parameters()}
    chains = {name: p.repeat(args.chains, *[1] * p.dim()) for name, p in start.items()}
    def K(w): return 0.5 * ((functional_call(network, w, (X,)) - Y) ** 2).sum(dim=(1, 2)).mean()
    slopes, values = vmap(grad(K)), vmap(K)
    beta, step, pull = given["inverse_temperature"], given["step"] * args.step, given["localization"]
    total, count = torch.zeros(args.chains, dtype=torch.float64), 0
    for number in range(args.steps):
        g = slopes(chains)
        for name, w in chains.items():
            drift = beta * g[name] + pull * (w - start[name])
            chains[name] = w - 0.5 * step * drift + math.sqrt(step) * torch.randn_like(w)
        if number >= args.steps // 2 and number % 10 == 0:
            total, count = total + values(chains), count + 1
    return beta * total / count

def devinterp(module, given, args):
    """devinterp 2: a data set of numbers of inputs, and a loss for each of them."""
    from devinterp.slt.llc import llc
    torch.manual_seed(args.seed)
    truth, network = module.Network(), module.Network()
    X = module.sample_inputs(args.inputs)
    Y = truth(X).detach()
    def loss(model, numbers):
        rows = numbers[:, 0].long()
        return 0.5 * ((model(X[rows]) - Y[rows]) ** 2).sum(dim=(1, 2))[:, None]
    class Numbers(torch.utils.data.Dataset):
        def __len__(self): return args.inputs
        def __getitem__(self, k): return {"input_ids": torch.tensor([k, 0])}
    data = Numbers()
    found = llc(
        network, data, {"all": data}, lr=given["step"] * args.step, n_beta=given["inverse_temperature"], loss_fn=loss,
        localization=given["localization"], num_chains=args.chains, num_draws=args.steps // 20,
        num_burnin_steps=args.steps // 2, num_steps_bw_draws=10, batch_size=args.inputs, device="cpu",
        match_sampling_input_ids_across_chains=False, batches_per_draw=1, num_init_loss_batches=1,
    )
    return torch.as_tensor(found["llc_per_chain"].values, dtype=torch.float64).reshape(-1)

ESTIMATORS = {"langevin": langevin, "devinterp": devinterp}

def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="langevin")
    parser.add_argument("--chains", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--inputs", type=int, default=256)
    parser.add_argument("--step", type=float, default=1.0, help="times the suggested step")
    parser.add_argument("--tolerance", type=float, default=0.05, help="as a share of lambda")
    parser.add_argument("--only", help="one point, by its folder")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.chains < 40:
        parser.error("at least 40 chains are required for errors that mean something")
    points = json.loads((HERE / "suite.json").read_text())["points"]
    failed = 0
    print("point                lambda  m  half rank  half weights  estimate    error  verdict")
    for point in points:
        if args.only and point["folder"] != args.only:
            continue
        given = point["suggested"]
        values = ESTIMATORS[args.estimator](load(HERE / point["folder"]), given, args)
        value, m = Fraction(point["lambda"]), point["multiplicity"]
        mean, error = values.mean().item(), values.std().item() / math.sqrt(len(values))
        expected = float(value) - (m - 1) / math.log(given["inverse_temperature"])
        passes = abs(mean - expected) <= max(3 * error, args.tolerance * float(value))
        gap = abs(float(value - Fraction(point["half_hessian_rank"])))
        noisy = gap > 0 and 3 * error > gap / 2
        failed += noisy or not passes
        halves = f"{point['half_hessian_rank']:>10} {point['half_parameters']:>13}"
        verdict = "too noisy to tell lambda from half the rank" if noisy else "pass" if passes else "FAIL"
        print(f"{point['folder']:20} {str(value):>6} {m:2} {halves} {mean:9.3f} {error:8.3f}  {verdict}", flush=True)
    return 1 if failed else 0

if __name__ == "__main__":
    sys.exit(main())
'''
