"""Examples at the end of each help; they work in the folder of ``attngeom demo``, and the tests run them there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import typer
from typer.models import CommandInfo, OptionInfo

EXAMPLES = {
    "demo": ("demo", "demo examples"),
    "random": ("random --widths 3,3,3 --attention 2 --out w.json", "random --widths 8,8 --heads 2 --out w.safetensors"),
    "dim": ("dim --widths 3,3,3 --attention 2 --prove", "dim --kind softmax --heads 12 --widths 768,768,768"),
    "net": ("net network.py:attention", "net network.py:mlp --weights layers --input 3"),
    "compare": ("compare a.json b.json", "compare trained.safetensors moved.safetensors --tolerance 1e-9"),
    "canonicalize": ("canonicalize a.json --out canonical.json",),
    "teleport": ("teleport trained.safetensors --objective norm --out small.safetensors",),
    "fingerprint": ("fingerprint a.json", "fingerprint model"),
    "recover": ("recover realizable.json --out found.json",),
    "certify": ("certify realizable.json --attention 2 --out proof.json", "certify closure_only.json"),
    "verify": ("verify certificate.json", "verify certificate.json --standalone"),
    "prove": ("prove certificate.json --out proof.v",),
    "invariants": ("invariants --d 3 --a 2 --count", "invariants --d 2 --a 1 --family attention-rank --format latex"),
    "implicitize": ("implicitize --d 3 --a 2 --max-degree 4", "implicitize --d 2 --a 2 --max-degree 4 --complete"),
    "inspect": ("inspect singular.json", "inspect trained.safetensors --json"),
    "lambda": ("lambda boundary.json", "lambda --widths 2,2 --attention 1 --table"),
    "heads": ("heads --widths 4,4 --attention 2 --heads 2 --prove",),
    "laws": ("laws --widths 3,3 --attention 3",),
    "coefficients": ("coefficients layer.json --out c.json",),
    "forward": ("forward a.json x.json",),
    "info": ("info",),
    "model": ("model inspect model", "model compare model model-moved"),
    "atlas": ("atlas run sweep.toml --store atlas.db --workers 1", "atlas summary --store atlas.db"),
    "model inspect": ("model inspect model",),
    "model published": ("model published",),
    "model compare": ("model compare model model-moved",),
    "model fingerprint": ("model fingerprint model",),
    "model canonicalize": ("model canonicalize model --out model-canonical",),
    "model teleport": ("model teleport model --out model-elsewhere --seed 5",),
    "model align": ("model align model model-moved --out model-aligned",),
    "model lineage": ("model lineage model-moved model",),
    "model merge": ("model merge model model-moved --out model-merged",),
    "atlas run": ("atlas run sweep.toml --store atlas.db --workers 1",),
    "atlas show": ("atlas show --store atlas.db --question dimension --where kind=softmax --sort -dimension",),
    "atlas export": ("atlas export --store atlas.db --out atlas.csv",),
    "atlas merge": ("atlas merge atlas.db --store all.db",),
    "atlas summary": ("atlas summary --store atlas.db",),
    "atlas verify": ("atlas verify --store atlas.db --seconds 60",),
    "atlas plot": ("atlas plot --store atlas.db --out figures",),
    "track": ("track start.safetensors trained.safetensors",),
    "explore": ("explore", "explore a.json"),
    "import": ("import model/model.safetensors --idealised --out attention.safetensors",),
    "reproduce": ("reproduce --claim G-corollary-3.8 --quick --out report",),
}
"""For each command, or command of a group, what to type behind ``attngeom``."""


METAVARS: dict[Any, str] = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
"""What stands for a value of this type in a help."""


def finish_helps(app: typer.Typer) -> None:
    """Name the values of options and put the examples at the end of the help of every command and group."""
    for info in app.registered_groups:
        if info.typer_instance is not None:
            info.epilog = _epilog(f"{info.name}")
            for command in info.typer_instance.registered_commands:
                _finish(command, f"{info.name} {command.name}")
    for command in app.registered_commands:
        _finish(command, f"{command.name}")


def _finish(command: CommandInfo, name: str) -> None:
    command.epilog = _epilog(name)
    if command.callback is None:
        return
    first = (command.callback.__doc__ or "").partition("\n")[0]
    command.short_help = first.partition(". ")[0].rstrip(".") + "."
    parameters = signature(command.callback, eval_str=True).parameters
    for parameter in parameters.values():
        kind, *infos = get_args(parameter.annotation)
        for info in infos:
            if isinstance(info, OptionInfo) and info.metavar is None:
                info.metavar = next((METAVARS[leaf] for leaf in _leaves(kind) if leaf in METAVARS), None)
    # As objects: text would make the options anew.
    command.callback.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}


def name_arguments(command: Any) -> None:
    """Show the arguments of a command and of all below it by their names alone, whatever typer would add to them."""
    for below in getattr(command, "commands", {}).values():
        name_arguments(below)
    for param in command.params:
        if param.param_type_name == "argument":
            name = param.metavar or f"{param.name}{'...' if param.nargs != 1 else ''}"
            usage = name if name.startswith("[") else f"{{{name}}}" if param.required else f"[{name}]"
            param.get_usage_pieces = partial(_usage, usage)
            param.get_help_record = partial(_record, name, param.get_help_record)


def _usage(usage: str, ctx: Any) -> list[str]:
    return [usage]


def _record(name: str, record: Callable[[Any], tuple[str, str] | None], ctx: Any) -> tuple[str, str] | None:
    recorded = record(ctx)
    return None if recorded is None else (name, recorded[1])


def _leaves(kind: Any) -> list[Any]:
    """The types of which this one is made."""
    return [leaf for part in get_args(kind) for leaf in _leaves(part)] or [kind]


def _epilog(name: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  attngeom {line}" for line in EXAMPLES[name])
