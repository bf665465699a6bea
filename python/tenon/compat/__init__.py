"""The calls of other device layers, so that programs written for them run by changing an import.

tt_lib (Tenstorrent's device library), ttnn (opening and closing a card), artifex (a configurable device manager with JAX's
calls), daena (a CPU, GPU and TPU abstraction). They translate calls; what they do is in the library.
"""
