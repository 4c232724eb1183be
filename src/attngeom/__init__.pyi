"""Types of the public names, which the package loads when they are first used: one line for each home."""

from attngeom import atlas as atlas
from attngeom import learning as learning
from attngeom import models as models
from attngeom import papers as papers
from attngeom.canonical import canonicalize as canonicalize
from attngeom.canonical import fingerprint as fingerprint
from attngeom.canonical import teleport as teleport
from attngeom.certification import certify as certify
from attngeom.comparison import compare as compare
from attngeom.dimensions import dimension as dimension
from attngeom.equations import invariants as invariants
from attngeom.equations.ideal import implicitize as implicitize
from attngeom.exact import GF as GF
from attngeom.exact import QQ as QQ
from attngeom.exact import RR as RR
from attngeom.heads.finding import heads as heads
from attngeom.inspection.geometry import inspect as inspect
from attngeom.interop import import_checkpoint as import_checkpoint
from attngeom.interop import import_state as import_state
from attngeom.interop import read_weights as read_weights
from attngeom.interop import write_weights as write_weights
from attngeom.layer.coefficients import Coefficients as Coefficients
from attngeom.layer.coefficients import coefficients as coefficients
from attngeom.layer.files import read_coefficients as read_coefficients
from attngeom.layer.files import write_coefficients as write_coefficients
from attngeom.learning import learning_coefficient as learning_coefficient
from attngeom.learning.laws import conserved_quantities
from attngeom.learning.track import track as track
from attngeom.network import Architecture as Architecture
from attngeom.network import Weights as Weights
from attngeom.network import forward as forward
from attngeom.network import random_weights as random_weights
from attngeom.rank.analysis import analyze as analyze
from attngeom.recovery.recover import recover as recover
from attngeom.verification import verify as verify
from attngeom.version import __version__ as __version__

laws = conserved_quantities
net = analyze
