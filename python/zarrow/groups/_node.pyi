"""What the stubs of Array and Group share."""

from zarrow.groups.node_info import Info

class _Node:
    @property
    def path(self) -> str:
        """The path in the store, without a slash before it; "" is the root."""
    @property
    def name(self) -> str:
        """The path in the store, with a slash before it."""
    @property
    def basename(self) -> str:
        """The last part of the path; "" for the root."""
    @property
    def store(self) -> str:
        """The name of the store, such as its path or URL."""
    @property
    def read_only(self) -> bool:
        """Whether this object writes nothing: it was opened with mode "r", or the store is read-only."""
    @property
    def zarr_format(self) -> int:
        """The version of the Zarr format: 2 or 3."""
    @property
    def info(self) -> Info:
        """A printable summary."""
