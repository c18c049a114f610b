// Counters of the driver's work.

#include "counters.h"

#include "abi.h"

namespace software_device {

std::atomic<uint64_t> counters[COUNTERS];

}  // namespace software_device

using namespace software_device;

// Writes all ten counters.
CUDA_API zarrow_device_counters(uint64_t* values) {
    for (int counter = 0; counter < COUNTERS; counter++) values[counter] = counters[counter];
    return CUDA_SUCCESS;
}

CUDA_API zarrow_device_reset_counters() {
    for (int counter = 0; counter < LIVE_ALLOCATIONS; counter++) counters[counter] = 0;
    return CUDA_SUCCESS;
}
