"""What differs from eager, or does not run compiled, and why: an entry whose operator no longer fails is a failure itself."""

from __future__ import annotations

import dataclasses

from .calls import Call
from .run import Finding


@dataclasses.dataclass(frozen=True)
class Known:
    sort: str  # of run.Finding
    reason: str
    operators: tuple[str, ...]
    dtypes: tuple[str, ...] = ()  # empty: any
    forms: tuple[str, ...] = ()
    text: str = ""  # part of what the finding says

    def covers(self, call: Call) -> bool:
        dtype = str(call.dtype).removeprefix("torch.")
        return call.operator in self.operators and (not self.dtypes or dtype in self.dtypes) and (not self.forms or call.form in self.forms)

    def explains(self, call: Call, finding: Finding) -> bool:
        return self.covers(call) and self.sort == finding.sort and self.text in finding.text


KNOWN: tuple[Known, ...] = ()


def known(call: Call, finding: Finding) -> Known | None:
    return next((entry for entry in KNOWN if entry.explains(call, finding)), None)
