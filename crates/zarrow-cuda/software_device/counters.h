// Counters for tests, for example of the bytes copied between host and device. Bytes and launches are counted when
// they are submitted, not when the stream executes them.
#pragma once

#include <atomic>
#include <cstdint>

namespace software_device {

enum Counter {
    HOST_TO_DEVICE_PAGEABLE,
    HOST_TO_DEVICE_PINNED,
    DEVICE_TO_HOST,
    DEVICE_TO_DEVICE,
    LAUNCHES,
    // Current values; `zarrow_device_reset_counters` does not reset these and the following counters.
    LIVE_ALLOCATIONS,
    LIVE_BYTES,
    LIVE_STREAMS,
    LIVE_EVENTS,
    LIVE_PINNED_BYTES,
    COUNTERS,
};

extern std::atomic<uint64_t> counters[COUNTERS];

}  // namespace software_device
