"""The DLPack tests of NumPy and pyarrow, with a Tensor as the producer (see `suites`).

`DIFFERENCES` explains intended failures; docs/exchange.md has the same list.
"""

from __future__ import annotations

import re

import pytest

import suites

READ_ONLY = (
    "Arrow's arrays are read-only, which a capsule without a version cannot say: pyarrow gives it anyway"
)
DIFFERENCES = {
    r"test_dunder_dlpack_stream": "a stream that there is not is a BufferError, as the array API says",
    r"test_dunder_dlpack_copy": "a copy= that is no bool is a TypeError",
    r"test_dlpack\[.*\]": READ_ONLY,
    r"test_dlpack_legacy_capsule\[.*array\]": READ_ONLY,
    r"test_dlpack_versioned_roundtrip\[.*array\]": READ_ONLY,
    r"test_dlpack_legacy_capsule_immutable_tensor.*": "it is refused by a BufferError",
    r"test_dlpack_legacy_capsule_copy_not_supported.*": "copy= is supported",
    r"test_dlpack_not_supported": "arrays that are not tensors are refused before DLPack is called",
}

_numpy = suites.load("numpy._core.tests.test_dlpack", ("numpy", "pytest"))
_pyarrow = suites.load("pyarrow.tests.test_dlpack", ("numpy", "pyarrow", "pytest"))
TestNumpy = _numpy.TestDLPack
globals().update({name: test for name, test in vars(_pyarrow).items() if name.startswith("test_")})


@pytest.fixture(autouse=True)
def _expected(request):
    for pattern, reason in DIFFERENCES.items():
        if re.fullmatch(pattern, request.node.name):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
