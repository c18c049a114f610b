// Pools, for allocations in streams.
//
// Freed memory is kept until a wait, and then up to the threshold. The pool only keeps numbers: every allocation
// has separate memory, so that accesses to freed memory are detected.
#pragma once

#include <cstdint>

#include "driver.h"

namespace software_device {

struct Context;

struct Pool {
    const CUdevice device;
    uint64_t threshold = 0;
    uint64_t used = 0;
    uint64_t used_high = 0;
    uint64_t reserved = 0;
    uint64_t reserved_high = 0;
    int reuse[3] = {1, 1, 1};
    bool is_destroyed = false;

    explicit Pool(CUdevice device) : device(device) {}

    static Pool& of(const Lock&, void* handle);
    // Returns the default pool of a device.
    static Pool& usual(const Lock&, CUdevice device);
    static void remove_all(const Lock&, const Context& context);
    static void trim_all(const Lock&, const Context& context);
    // Returns the unused bytes kept by the pools of a device.
    static uint64_t kept_nbytes(const Lock&, const Context& context);

    void add(const Lock&, uint64_t nbytes);
    // This may destroy the pool.
    void remove(const Lock&, uint64_t nbytes);
    void trim(const Lock&, uint64_t kept);
};

}  // namespace software_device
