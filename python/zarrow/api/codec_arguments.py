"""Codecs as users give them: objects of zarr-python and numcodecs, names, and dicts in metadata form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrow.errors import CodecError

# Keys of a codec in version 3; its parameters are in the configuration.
_KEYS = ("name", "configuration", "must_understand")


def chosen_codecs(codecs: Any) -> list[Any]:
    """List the codecs of one, of several, or of none."""
    if codecs is None:
        return []
    if isinstance(codecs, (str, Mapping)) or hasattr(codecs, "to_dict") or hasattr(codecs, "get_config"):
        codecs = [codecs]
    return [_codec(codec) for codec in codecs]


def _codec(codec: Any) -> Any:
    """Return a codec as metadata have it."""
    if hasattr(codec, "to_dict"):  # of zarr-python
        return _of_zarr_python(codec)
    if hasattr(codec, "get_config"):  # of numcodecs
        codec = codec.get_config()
    if not isinstance(codec, Mapping):
        return codec
    _refuse_parameters_beside_the_name(codec)
    return dict(codec)


def _refuse_parameters_beside_the_name(codec: Mapping[str, Any]) -> None:
    """Refuse parameters beside the name: numcodecs puts them there, but version 3 does not."""
    beside = {key: value for key, value in codec.items() if key not in _KEYS}
    configuration = codec.get("configuration", {})
    if "name" not in codec or "id" in codec or not beside or not isinstance(configuration, Mapping):
        return
    import json

    name = codec["name"]
    raise CodecError(
        f"parameters of a codec belong in its configuration: type "
        f'{{"name": "{name}", "configuration": {json.dumps({**configuration, **beside}, default=repr)}}}',
        codec=str(name),
    )


def _of_zarr_python(codec: Any) -> dict[str, Any]:
    """Return a codec without the parameters that zarr-python derives from the data type."""
    given: dict[str, Any] = dict(codec.to_dict())
    configuration = dict(given.get("configuration", {}))
    for name in getattr(codec, "_tunable_attrs", ()):
        configuration.pop(name, None)
    for name in ("codecs", "index_codecs"):  # those inside of shards
        if isinstance(configuration.get(name), list | tuple) and hasattr(codec, name):
            configuration[name] = [_codec(inner) for inner in getattr(codec, name)]
    return {**given, "configuration": configuration} if configuration else given
