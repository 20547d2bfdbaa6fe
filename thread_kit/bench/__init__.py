"""What sharing one KV cache saves: the same calls through KV-true threads and through others.

    python -m thread_kit.bench --help

workload.py    the calls of an episode, with the texts that are forced on every contender
contenders.py  KV-true threads, and what people use instead
server.py      the contender that is a server of its own
episodes.py    several episodes at once through all of them, without drafts and with
exactness.py   how far its logits are from those of an evaluation from scratch
rates.py       how close to llama.cpp's own loop the kit writes, one episode and several at once
growth.py      how the work grows with the depth and with the number of threads: counts, no model
player.py      how long the player takes for a large episode, in a headless Chromium
tables.py      what was measured, as tables; figures.py: as pictures
"""
