"""Engines: tokens in, tokens out.

The G of Algorithm 1, behind one small interface (`engine.py`).
"""

import os

# llama.cpp's threads wait for one another by spinning. Where something else wants a core too, they
# would spin through whole time slices; after a short while they sleep instead. Measured on two
# cores with one busy: 7 to 41 tokens/s without it, 31 to 35 with it, and no loss on idle cores.
# It stands here because it has to be set before any module loads the library.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
