# ruff: noqa: E501
"""The page's table of each change's requests."""

PROMISES = """\
## Requests of each change

The round trips of each change of a remote store, and their purpose. Requests of one round trip are
sent together. A consolidated group above is one more put.

| change | round trips | requests |
|---|---|---|
| write whole chunks | 3 | the array's document: nothing is written if it was erased or replaced; the chunks; the document again: it was not replaced |
| write parts of chunks | 3 | the document, and the old chunks; the chunks, each on the condition that the old one is unchanged; the document again |
| create an array or a group | 2 | a list, and the documents of the groups above; the document, on the condition that it is absent |
| create an array with elements | 4 | as before; an unfinished document: of two creators one wins; the chunks; the document in its place: readers see all elements or no array |
| replace an array | 5 | as before, and the old document; a list of all keys; the documents are deleted; the new document; the old chunks are deleted |
| change attributes | 2 | the documents; the document, on the condition that it is unchanged: changes by others are kept |
| append | 3 | the documents; the new shape, on the same condition: concurrent appends get different places; the chunks, after a read of partial ones |
| erase | 3 | the documents, and a list of all keys; the documents are deleted; the chunks are deleted |
"""
