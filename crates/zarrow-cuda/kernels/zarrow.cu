// All kernels: the one file that is compiled. Each kernel walks its elements in a grid-stride loop, so that any
// launch is right, and none waits for another thread.
#include "cast.cuh"
#include "checksum.cuh"
#include "compare.cuh"
#include "gather.cuh"
#include "place.cuh"
