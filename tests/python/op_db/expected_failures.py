"""What differs from eager, or does not run compiled, and why: an entry whose operator no longer fails is a failure itself."""

from __future__ import annotations

import dataclasses

from .calls import Call
from .run import Finding


@dataclasses.dataclass(frozen=True)
class ExpectedFailure:
    kind: str  # of run.Finding
    reason: str
    operators: tuple[str, ...]
    dtypes: tuple[str, ...] = ()  # empty: any
    forms: tuple[str, ...] = ()
    text: str = ""  # part of what the finding says
    devices: tuple[str, ...] = ("cpu", "cuda")

    def covers(self, operator: str, dtype: str, form: str, device: str) -> bool:
        return (
            operator in self.operators
            and device in self.devices
            and (not self.dtypes or dtype in self.dtypes)
            and (not self.forms or form in self.forms)
        )

    def explains(self, call: Call, finding: Finding) -> bool:
        return self.covers(call.operator, call.dtype_name, call.form, call.device) and self.kind == finding.kind and self.text in finding.text


EXPECTED_FAILURES: tuple[ExpectedFailure, ...] = (
    ExpectedFailure("fallback", "a size that a condition on data decides has no form in the IR", ("narrow",), text="Equality in a size expression"),
    ExpectedFailure(
        "crash",
        "torch: in the backward of index_fill a fake _unique has one result, whatever the index; another number of them raises here",
        ("index_fill",),
        forms=("backward",),
        text="aten::_unique returned result 0",
    ),
    ExpectedFailure(
        "wrong",
        "torch: vectors of SLEEF's fmod give NaN where the quotient is beyond the largest number; eager's single elements are right, as ours are",
        ("__rmod__", "fmod", "remainder"),
        dtypes=("float64",),
        text="in eager nan",
        devices=("cpu",),
    ),
)


def expected_failure(call: Call, finding: Finding) -> ExpectedFailure | None:
    return next((entry for entry in EXPECTED_FAILURES if entry.explains(call, finding)), None)
