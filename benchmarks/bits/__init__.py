"""Kernels on bit planes: the stages of ResNet-50 in four precisions."""
