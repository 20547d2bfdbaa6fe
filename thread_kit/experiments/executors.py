"""Where episodes are played, as the command line says it: processes here, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

ADDRESSES = "dask://HOST:PORT or processes://N"


@contextmanager
def open_executor(address: str) -> Iterator[Executor]:
    """The executor of an address (`ADDRESSES`), for `Suite.run`; closed at the end.

    Of a Dask cluster, dask://HOST:PORT is its scheduler. Raises ValueError for another address,
    ImportError without Dask, and OSError where no scheduler answers.
    """
    kind, mark, place = address.partition("://")
    if kind == "dask" and mark and place:
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError("a Dask cluster needs its client: pip install distributed") from error
        with Client(f"tcp://{place}") as client:
            yield client.get_executor()
    elif kind == "processes" and place.isdecimal() and int(place) > 0:
        with ProcessPoolExecutor(int(place), multiprocessing.get_context("spawn")) as executor:
            yield executor
    else:
        raise ValueError(f"no executor is called {address!r}; give {ADDRESSES}")
