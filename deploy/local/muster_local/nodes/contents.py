"""What the API gives to a pod, config maps, secrets and tokens, fetched and put into volumes."""

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from muster.errors import MusterError
from muster_kube import Kube
from muster_local.nodes.projection import TokenOrder, files_of, tokens_of
from muster_local.nodes.sources import Sources, fetch, sources_of
from muster_local.nodes.storage import PodFiles
from muster_local.nodes.tokens import Token, request_token
from muster_local.nodes.volumes import fill, is_filled, place_of

_log = logging.getLogger(__name__)

Raw = Mapping[str, Any]

_RETRY_SECONDS: Final = 5.0


class Contents:
    """Of one pod. `sources` and `places` are as of the last `prepare`."""

    def __init__(
        self, kube: Kube, pod: Raw, files: PodFiles, allocatable: Mapping[str, str]
    ) -> None:
        self._kube = kube
        self._pod = pod
        self._files = files
        self._allocatable = allocatable
        self._tokens: dict[TokenOrder, Token] = {}
        self.sources: Sources = {}
        self.places: Mapping[str, Path] = {}

    async def prepare(self) -> None:
        """Fetch all of it and fill the volumes. Raises a `MusterError` if something is missing."""
        await self.refresh_sources()
        volumes = self._pod["spec"].get("volumes") or ()
        self.places = {each["name"]: place_of(each, self._files.volumes) for each in volumes}
        await self._renew([each for volume in volumes for each in tokens_of(volume)])
        for volume in volumes:
            self._fill(volume)

    async def refresh_sources(self) -> None:
        """Read config maps and secrets again. Raises an `ApiError`."""
        namespace = self._pod["metadata"]["namespace"]
        self.sources = await fetch(self._kube, namespace, sources_of(self._pod))

    async def keep_tokens(self) -> None:
        """Renew tokens before they end, until cancelled; returns where there are none."""
        while self._tokens:
            due = min(token.renew_at for token in self._tokens.values())
            await asyncio.sleep(max(0.0, due - time.time()))
            now = time.time()
            late = [order for order, token in self._tokens.items() if token.renew_at <= now]
            try:
                await self._renew(late)
            except MusterError as error:
                name = self._pod["metadata"]["name"]
                _log.warning("renewing a token of pod %s failed, trying again: %s", name, error)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            for volume in self._pod["spec"].get("volumes") or ():
                if set(late) & set(tokens_of(volume)):
                    self._fill(volume)

    async def _renew(self, orders: list[TokenOrder]) -> None:
        now = time.time()
        asked = (request_token(self._kube, self._pod, order, now=now) for order in orders)
        for order, token in zip(orders, await asyncio.gather(*asked), strict=True):
            self._tokens[order] = token

    def _fill(self, volume: Raw) -> None:
        if is_filled(volume):
            texts = {order: token.text for order, token in self._tokens.items()}
            files = files_of(volume, self._pod, self.sources, texts, allocatable=self._allocatable)
            fill(self.places[volume["name"]], files)
