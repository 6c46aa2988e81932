"""Binary and few-bit networks, from pixels to logits: definitions, reference, kernels, training, trained weights."""

from subbyte.networks.catalogue import CATALOGUE, network, perceptron
from subbyte.networks.check import NetworkCheck
from subbyte.networks.compiled import CompiledNetwork
from subbyte.networks.ensemble import Ensemble, EnsembleResult, EnsembleTime, TrainedEnsemble, train_ensemble
from subbyte.networks.layer import NetworkLayer
from subbyte.networks.network import Network
from subbyte.networks.parameters import Logits, Parameters
from subbyte.networks.result import LayerOutput, NetworkResult
from subbyte.networks.timeline import NetworkTimeline, TimelineLayer
from subbyte.networks.training import Trained, train

__all__ = [
    "CATALOGUE",
    "CompiledNetwork",
    "Ensemble",
    "EnsembleResult",
    "EnsembleTime",
    "LayerOutput",
    "Logits",
    "Network",
    "NetworkCheck",
    "NetworkLayer",
    "NetworkResult",
    "NetworkTimeline",
    "Parameters",
    "TimelineLayer",
    "Trained",
    "TrainedEnsemble",
    "network",
    "perceptron",
    "train",
    "train_ensemble",
]
