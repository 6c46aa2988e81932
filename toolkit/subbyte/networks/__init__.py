"""Networks of few bits, from pixels to logits: definitions, reference, kernels, training, trained weights."""

from subbyte.networks.catalogue import CATALOGUE, network, perceptron
from subbyte.networks.layer import NetworkLayer
from subbyte.networks.network import Network
from subbyte.networks.parameters import Logits, Parameters
from subbyte.networks.result import LayerOutput, NetworkResult

__all__ = [
    "CATALOGUE",
    "LayerOutput",
    "Logits",
    "Network",
    "NetworkLayer",
    "NetworkResult",
    "Parameters",
    "network",
    "perceptron",
]
