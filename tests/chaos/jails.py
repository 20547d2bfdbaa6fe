"""Attempts to get out of both sandboxes, and answers that code forges in the jail's name."""

from __future__ import annotations

import json
import random
import traceback
from collections.abc import Mapping
from typing import Any

from helpers.escapes import HEAD, list_escapes, list_escapes_of_monty
from helpers.hostile import FIND_PIPE, LIMITS, NUMBERS, ODD_NAMES, PNG, TEXTS, must_hold

from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.sandbox import Sandbox

from .tally import Tally


def play_escapes(seed: int, count: int) -> Tally:
    """`count` of the list in each sandbox, in an order of the seed; or all there are."""
    tally = Tally()
    with MontySandbox(seconds=0.5) as monty:
        _try_all(tally, seed, count, "monty", monty, list_escapes_of_monty())
    with BubblewrapSandbox({"look_up": lambda *_: [1]}, seconds=1) as jail:
        _try_all(tally, seed, count, "jail", jail, list_escapes())
    return tally


def _try_all(
    tally: Tally, seed: int, count: int, kind: str, sandbox: Sandbox, escapes: Mapping[str, str]
) -> None:
    names = sorted(escapes)
    random.Random(seed).shuffle(names)
    for name in names[:count]:
        head = HEAD if kind == "jail" else "import os\n"
        result = sandbox.execute(None, head + escapes[name])
        tally.counts[f"escapes from {kind}"] += 1
        if "OUT" in result.printed:
            tally.find(f"{kind}: {name}", result)
        if sandbox.execute(None, "print(1 + 1)").printed != "2\n":
            tally.find(f"{kind}: {name}", "the next line does not run")


def play_forgeries(seed: int, count: int) -> Tally:
    """`count` answers as the host reads them; and a tenth as many by code, through the jail."""
    tally, forger = Tally(), Forger(seed)
    with BubblewrapSandbox({"look_up": lambda *_: [1]}, seconds=1, calls=20, **LIMITS) as jail:
        for number in range(count):
            frame = forger.frame()
            try:
                must_hold(jail._read_result(b"before", frame, "/scratch"), b"before")
                if json.loads(jail._answer(frame)[12:]).keys() not in ({"value"}, {"error"}):
                    tally.find(f"frame {number} of seed {seed}", "no answer")
            except Exception:
                tally.find(f"frame {number} of seed {seed}", f"{frame!r}\n{traceback.format_exc()}")
            tally.counts["forged frames"] += 1
        before = jail.execute(None, "before = 1").state
        server = jail._server
        for number in range(count // 10):
            kinds = [forger.pack(b"", forger.choice([b"d", b"c", b"x", b""])) for _ in range(3)]
            sent = b"".join(kind + forger.frame() for kind in kinds)[:200_000]
            try:
                code = f"{FIND_PIPE}os.write(RUN.out, {sent!r})\nos._exit(0)"
                must_hold(jail.execute(before, code), before)
                if jail.execute(before, "print(before)").printed != "1\n":
                    tally.find(f"forgery {number} of seed {seed}", "the next line does not run")
                if jail._server is not server:
                    tally.find(f"forgery {number} of seed {seed}", "the server was replaced")
                    server = jail._server
            except Exception:
                tally.find(f"forgery {number} of seed {seed}", traceback.format_exc())
            tally.counts["forged answers by code"] += 1
    return tally


class Forger(random.Random):
    """Makes what no honest process of the jail sends."""

    def odd(self, depth: int = 3) -> Any:
        kind = self.random()
        if kind < 0.35:
            return self.choice(NUMBERS)
        if kind < 0.6 or depth == 0:
            return self.choice([None, "", "a" * 9_000, *TEXTS, *ODD_NAMES])
        if kind < 0.8:
            return [self.odd(depth - 1) for _ in range(self.randint(0, 3))]
        return {self.choice(ODD_NAMES): self.odd(depth - 1) for _ in range(self.randint(0, 3))}

    def message(self) -> bytes:
        kind = self.random()
        if kind < 0.1:
            return self.choice([b"", b"{", b"[" * 90_000, b"9" * 5_000, self.randbytes(20)])
        if kind < 0.3:
            fields = {"name": "look_up", "arguments": [], "named": {}}
        else:
            fields = {
                "printed": "",
                "cut": 0,
                "error": None,
                "variables": {"x": "1"},
                "pictures": [],
            }
        for name in self.sample(sorted(fields), self.randint(0, 3)):
            fields[name] = self.odd()
        if self.random() < 0.2:
            fields.pop(self.choice(sorted(fields)))
        if self.random() < 0.2:
            fields["pictures"] = [[self.choice(TEXTS), self.choice(NUMBERS)] for _ in range(3)]
        return json.dumps(self.odd() if kind > 0.95 else fields).encode("utf-8", "surrogatepass")

    def pack(self, message: bytes, tail: bytes) -> bytes:
        """A frame; now and then its lengths are not those of what follows."""
        off = self.choice([0, 1, -1, 2**31]) if self.random() < 0.1 else 0
        head = (len(message) + off) % 2**32, (len(tail) - off) % 2**64
        return head[0].to_bytes(4, "little") + head[1].to_bytes(8, "little") + message + tail

    def frame(self) -> bytes:
        tails = [b"", b"", PNG, PNG + bytes(30), self.randbytes(9)]
        message = self.message()
        head = len(message).to_bytes(4, "little")
        tail = self.choice(tails)
        return head + len(tail).to_bytes(8, "little") + message + tail
