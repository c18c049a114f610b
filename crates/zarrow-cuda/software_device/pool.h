// Pools, from which memory comes in streams.
//
// What is freed is kept, up to the threshold, when somebody has waited; until then all of it. Only numbers are kept
// here: every allocation has memory of its own, so that an access to memory that went is seen.
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
    // The pool that every device has.
    static Pool& usual(const Lock&, CUdevice device);
    static void remove_all(const Lock&, const Context& context);
    static void trim_all(const Lock&, const Context& context);
    // Bytes that the pools of a device keep beyond those that are used.
    static uint64_t kept_nbytes(const Lock&, const Context& context);

    void add(const Lock&, uint64_t nbytes);
    // The pool may be gone afterwards.
    void remove(const Lock&, uint64_t nbytes);
    void trim(const Lock&, uint64_t kept);
};

}  // namespace software_device
