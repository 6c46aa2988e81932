"""The kernel with a pipeline of input rows."""
