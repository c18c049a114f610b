# ruff: noqa: E501
"""The page's table of each change's requests."""

PROMISES = """\
## Requests of each change

The round trips of each change of a remote store, beside those of zarr-python with obstore, and the purpose of each. Requests of one
round trip are sent together. A round trip that zarr-python does not make is the price of a promise, in bold. A consolidated
group above is one more put.

| change | round trips | zarr-python | requests |
|---|---|---|---|
| write whole chunks | 3 | 1 | the array's document: **nothing is written below an array that was erased or replaced**; the chunks; the document again: **what returned is in the array that is there** |
| write parts of chunks | 3 | 2 | the document, and the old chunks; the chunks, each on the condition that the old one is unchanged; the document again: **what returned is in the array that is there** |
| `zarrow.write_many` of whole chunks of 50 arrays | 3 | 50 | as before, for all arrays at once |
| create an array or a group | 2 | 3 | a list, and the documents of the groups above; the document, on the condition that it is absent. In a group that the same store object created within the last second: 1, the document |
| create an array with elements | 4 | 4 | as before; an unfinished document: **of two creators one wins**; the chunks; the document in its place: **readers see all elements or no array** |
| replace an array | 5 | 4 | a list, the documents of the groups above, and the old document; a list of all keys; the documents are deleted: **no reader sees old chunks in the new array**; the new document; the old chunks are deleted. With elements: 7, for the chunks and a second document |
| change attributes | 2 | 1 | the documents; the document, on the condition that it is unchanged: **changes by others are kept**. If this store object put the document last: 1, the put, with the documents of the groups above beside it |
| append | 3 | 2 | the documents; the new shape, on the same condition: **concurrent appends get different places**; the chunks, after a read of partial ones. If this store object put the document last: 2 |
| make larger | 2 | 1 | the documents, and a list of all chunks: **no element that a stopped writer left appears**; the shape, on the same condition |
| make smaller | 4 | 3 | the documents; the shape, on the same condition: **changes by others are kept**; a list of all chunks; one delete for each 1000 of them |
| erase | 3 | 6 | the documents, and a list of all keys; the documents are deleted; the chunks are deleted |
| create a tree: 13 groups and 60 arrays with elements, consolidated | 7 | 369 by xarray | a list, and the documents of the groups above; the topmost document: **of two creators one wins**; all other documents, unfinished ones for the arrays: **readers see all elements or no array**; all chunks; the documents of the arrays; the consolidated metadata. A host gets 64 requests at once at first: a batch of more takes another round trip. `zarrow.xarray.to_zarr` takes 5 |
| `zarrow.save` of 50 small arrays by name | 4 | | a list, and the documents of the group and of the groups above; all documents, unfinished ones for the arrays; all chunks; the documents of the arrays, with the names of a dict in the attributes of a new group. A dict over an existing group: 5, the names last |
| copy a group of 50 small arrays | 4 | | as before; if it is copied from a remote store, 3 more, which list and read it |
| `zarrow.ome.save` of small levels | 6 | | as a tree, without consolidated metadata; the attributes of the image last: **an unfinished group is no image**. With labels: 8, two more for their attributes. Over an existing image: 4 more. Each level of more than 4 MiB: 4 more |
| `Group.append` to the arrays of a table | 6 | | the arrays are opened; their documents; claims on these, so that other writers wait; all elements at once; all documents with the new lengths, which replace the claims; the documents again. Two more if an array ends within a chunk, for this chunk and for its document: **`array.append` beside it loses nothing**. One more in a group below the root, which looks for consolidated metadata above; with it, 3 more for each array, one after the other |
| frames of a `zarrow.stream.Writer` | 5 | | the document; a claim on it; the chunks, each on the condition that none is there; the document with the new length: **readers see stored elements only**; the document again. If the array ends within a chunk: 7, the old chunk and the document. The first time: two more, which check that the server heeds conditions, and look for consolidated metadata above |
| set up a plan of new arrays, such as `zarrow.ome.pyramid` | 7 | | a look for existing nodes: 5; a list; all documents. More than 12 arrays take more, because a host gets 64 requests at once at first |
| `zarrow.save` of an AnnData | 12 | | a root that says that it is unfinished; all other nodes as before; the attributes of the root; all documents; the consolidated metadata |
| consolidate a group of 40 arrays | 7 | | a list of each group, and then the documents of 64 members at once; version 2: 12, with three documents for each member |

Many writes at once to one array, and many arrays that are created at once in one group, share requests for the same document:
those asked for within 2 ms, while another is under way, are sent as one. A request never joins one that was sent before it.
"""
