"""Google Data Commons as a source of series, behind a cache that says where each value is from.

A series is a Parquet file: date, value, and on every row the import, its address, and when it was
fetched. What is in the cache needs no network and no key (`DC_API_KEY`; free, from Data Commons).
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import pandas as pd

from thread_kit.envs.datacommons.statistics import Statistics
from thread_kit.replace_file import replace_file, replace_text

KEY = "DC_API_KEY"


class MissingDataError(LookupError):
    """What is not in the cache, and could not be fetched; the message says why."""


@final
class DataCommons(Statistics):
    """Series of Data Commons.

    folder: the cache. url: another instance of Data Commons. Raises ImportError without the package
    datacommons-client. Without network or key, what the cache does not have is `MissingDataError`.
    """

    def __init__(self, folder: str | Path, *, url: str | None = None) -> None:
        if importlib.util.find_spec("datacommons_client") is None:
            raise ImportError('the client is not installed: pip install ".[statistics]"')
        self.folder = Path(folder)
        self.url = url
        self._client: Any = None

    def __repr__(self) -> str:
        return f"DataCommons({str(self.folder)!r})"

    def find_places(self, words: str) -> list[dict[str, str]]:
        places = self._search("places", words, lambda dc: dc.resolve.fetch_dcids_by_name(words))
        if not places:
            raise LookupError(f"Data Commons knows no place by the words {words!r}.")
        return places

    def find_variables(self, words: str) -> list[dict[str, str]]:
        variables = self._search("variables", words, lambda dc: dc.resolve.fetch_indicators(words))
        if not variables:
            raise LookupError(f"Data Commons has no variable that fits the words {words!r}.")
        return variables

    def observations(self, place_ID: str, variable_ID: str) -> list[dict[str, Any]]:
        path = self.folder / "observations" / f"{_file_name(place_ID, variable_ID)}.parquet"
        if not path.is_file():
            table = self._fetch(place_ID, variable_ID)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as part:  # others may read it
                table.to_parquet(part)
        table = pd.read_parquet(path)
        if table.empty:
            raise LookupError(f"Data Commons has no values of {variable_ID} for {place_ID}.")
        return [
            {"date": date, "value": value}
            for date, value in zip(table["date"], table["value"], strict=True)
        ]

    def _fetch(self, place: str, variable: str) -> pd.DataFrame:
        reply = self._ask(
            lambda dc: dc.observation.fetch(
                variable_dcids=[variable], entity_dcids=[place], date="all"
            )
        ).to_dict()
        facets = reply.get("byVariable", {}).get(variable, {}).get("byEntity", {}).get(place, {})
        ordered = facets.get("orderedFacets") or [{}]
        source = reply.get("facets", {}).get(ordered[0].get("facetId"), {})
        rows = [row for row in ordered[0].get("observations", []) if row.get("value") is not None]
        table = pd.DataFrame(rows, columns=["date", "value"]).sort_values("date")
        return table.assign(
            source=source.get("importName", ""),
            address=source.get("provenanceUrl", ""),
            fetched=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )

    def _search(self, kind: str, words: str, ask: Callable[[Any], Any]) -> list[dict[str, str]]:
        if not isinstance(words, str):  # lists would be kept under the name of what they spell
            raise TypeError(f"{kind} are looked for by words, a text, not {words!r}")
        path = self.folder / kind / f"{_file_name(words)}.json"
        if not path.is_file():
            entities = self._ask(ask).to_dict().get("entities", [])
            candidates = [
                {"name": (row.get("metadata") or {}).get("sentence", words), "ID": row["dcid"]}
                for entity in entities
                for row in entity.get("candidates", [])
            ]
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, json.dumps(candidates))
        return json.loads(path.read_text(encoding="utf-8"))

    def _ask(self, ask: Callable[[Any], Any]) -> Any:
        from datacommons_client.client import DataCommonsClient
        from datacommons_client.utils.error_handling import DataCommonsError

        if self.url is None and not os.environ.get(KEY):
            raise MissingDataError(
                f"This is not in the cache, and {KEY} is not set: no key, no values."
            )
        try:
            if self._client is None:
                self._client = DataCommonsClient(os.environ.get(KEY), url=self.url)
            return ask(self._client)
        except (DataCommonsError, OSError) as error:
            kind = type(error).__name__
            raise MissingDataError(
                f"This is not in the cache, and Data Commons cannot be reached ({kind})."
            ) from error


def _file_name(*texts: str) -> str:
    """Texts as a file name; a name that file systems do not take, by its hash."""
    escaped = ("".join(c if c.isalnum() or c == "_" else f"%{ord(c):x}." for c in t) for t in texts)
    name = "--".join(escaped)
    return name if len(name.encode()) <= 240 else hashlib.sha256(name.encode()).hexdigest()
