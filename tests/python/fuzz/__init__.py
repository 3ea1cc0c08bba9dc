"""Random programs through torch.compile, against eager and f64.

`program.py` holds what a program is: inputs, and steps that are lines of Python. `generate.py` grows one, choosing among the steps
of `steps.py`; sizes and dtypes follow from running each step as soon as it is chosen. `run.py` compares the compiled program with eager,
`shrink.py` makes a failing one small. `python -m fuzz --help` (from tests/python) runs many.
"""
