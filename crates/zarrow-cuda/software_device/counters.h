// What was done, for tests that ask how many bytes crossed the border between host and device. Bytes and launches are
// counted when they are asked for, not when the stream comes to them.
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
    // What is there now; `zarrow_device_reset_counters` leaves these and the next as they are.
    LIVE_ALLOCATIONS,
    LIVE_BYTES,
    LIVE_STREAMS,
    LIVE_EVENTS,
    LIVE_PINNED_BYTES,
    COUNTERS,
};

extern std::atomic<uint64_t> counters[COUNTERS];

}  // namespace software_device
