"""The products of a shop: the official files of WebShop, or the kit's synthetic ones.

A folder of official files has the products (`items_shuffle_1000.json`, `items_shuffle.json`, or the
same as processed by WebShop's own loader), their attributes (`items_ins_v2_1000.json`,
`items_ins_v2.json`) and, where there are any, the instructions that people wrote
(`items_human_ins.json`); each may be packed (.xz, .gz). The texts of the products were collected
from a shop by WebShop's authors and may not be redistributed here: they stay where they lie.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from thread_kit.envs.webshop.product import Instruction, Product
from thread_kit.envs.webshop.synthetic import make_products

SHOP_VARIABLE = "THREAD_KIT_WEBSHOP"

_ID = re.compile("[A-Z0-9]{1,10}")
_FILES = {
    "products": re.compile(r"(items_shuffle|products|documents).*\.json(\.xz|\.gz)?"),
    "attributes": re.compile(r"items_ins.*\.json(\.xz|\.gz)?"),
    "people": re.compile(r"items_human_ins.*\.json(\.xz|\.gz)?"),
}


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The products of a shop, in the order of their file. name: what a task calls the shop."""

    name: str
    products: tuple[Product, ...]

    def __repr__(self) -> str:
        return f"Catalogue({self.name!r}, {len(self.products)} products)"


def load_catalogue(folder: str | Path | None = None) -> Catalogue:
    """The shop in `folder`; None: that of THREAD_KIT_WEBSHOP, else the kit's synthetic one.

    Raises FileNotFoundError for a folder that lacks a file, ValueError for one that is no such
    file.
    """
    folder = folder or os.environ.get(SHOP_VARIABLE)
    return _load_synthetic() if folder is None else _load_folder(Path(folder).expanduser())


@cache
def _load_synthetic() -> Catalogue:
    products = make_products()
    return Catalogue(f"synthetic ({len(products)} products)", products)


@cache
def _load_folder(folder: Path) -> Catalogue:
    files = {role: _find(folder, pattern) for role, pattern in _FILES.items()}
    for role in ("products", "attributes"):
        if files[role] is None:
            raise FileNotFoundError(
                f"{folder} has no file of WebShop's {role} ({_FILES[role].pattern}); put the "
                f"official files there, or unset {SHOP_VARIABLE} for synthetic products"
            )
    rows, attributes, people = (_read(path) if path else {} for path in files.values())
    try:
        products = _make_products(rows, attributes, people)
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(f"{files['products']} has no products of WebShop: {error!r}") from error
    return Catalogue(f"official ({len(products)} products)", products)


def _find(folder: Path, pattern: re.Pattern[str]) -> Path | None:
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return next((path for path in paths if pattern.fullmatch(path.name)), None)


def _read(path: Path) -> Any:
    openers: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
    try:
        with openers.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
            return json.load(file)
    except (ValueError, EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is no file of WebShop: {error}") from error


def _make_products(
    rows: Sequence[Mapping[str, Any]],
    attributes: Mapping[str, Mapping[str, Any]],
    people: Mapping[str, Sequence[Mapping[str, Any]]],
) -> tuple[Product, ...]:
    products: dict[str, Product] = {}
    for row in rows:
        asin = row["asin"]
        if asin in products or not _ID.fullmatch(asin):
            continue
        known = attributes.get(asin, {})
        written = known.get("instruction")
        products[asin] = Product(
            asin,
            row["name"],
            row["query"].lower().strip(),
            tuple(part.strip() for part in row["product_category"].split("›")),
            row["full_description"],
            _as_tuple(row["small_description"]),
            _prices(row.get("pricing")),
            _options(row),
            tuple(known.get("attributes", ["DUMMY_ATTR"])),
            (Instruction(written, tuple(known["instruction_attributes"])),) if written else (),
            tuple(
                Instruction(
                    by["instruction"].strip("."),
                    tuple(by["instruction_attributes"]),
                    tuple(by["instruction_options"]),
                )
                for by in people.get(asin, ())
                if by["instruction_attributes"]
            ),
            row.get("category") or "",
        )
    return tuple(products.values())


def _as_tuple(texts: str | Sequence[str]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _prices(pricing: str | Sequence[float] | None) -> tuple[float, ...]:
    """Of "$19.99 to $27.99", or of numbers, the first two."""
    if isinstance(pricing, str):
        pricing = [float(re.sub(r"[^\d.]", "", part)) for part in pricing.split("$")[1:]]
    return tuple(float(price) for price in pricing or ())[:2]


def _options(row: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    if "options" in row:
        return {name: tuple(values) for name, values in row["options"].items()}
    return {
        name.lower(): tuple(v["value"].strip().replace("/", " | ").lower() for v in values)
        for name, values in (row.get("customization_options") or {}).items()
        if values is not None
    }
