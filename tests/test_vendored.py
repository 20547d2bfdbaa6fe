"""What others wrote lies in tests/vendor, unmodified and with its licence."""

import hashlib
from pathlib import Path

AXE_CORE = Path(__file__).parent / "vendor" / "axe-core"


def test_axe_core_is_unmodified_and_has_its_licence():
    digest = hashlib.sha256((AXE_CORE / "axe.min.js").read_bytes()).hexdigest()
    assert digest == "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
    assert "Mozilla Public License, version 2.0" in (AXE_CORE / "LICENSE").read_text("utf-8")
