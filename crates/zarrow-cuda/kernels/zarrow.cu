// All kernels; only this file is compiled. Each kernel walks its elements in a grid-stride loop, so that any launch
// size is correct, and no thread waits for another.
#include "cast.cuh"
#include "checksum.cuh"
#include "compare.cuh"
#include "gather.cuh"
#include "place.cuh"
