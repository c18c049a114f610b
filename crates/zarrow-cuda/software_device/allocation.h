// Memory allocated by the driver, and when it may be accessed.
//
// - Device addresses have a tag, bit 62, that host addresses do not have, so that a host access faults.
// - Memory allocated and freed in a stream exists between the two operations: before and after them, an access is
//   illegal, even if the address was already known.
// - New and freed memory is filled with POISON. Freed memory is kept for a while, so that its address is not reused
//   at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "driver.h"

namespace software_device {

struct Context;
struct Pool;

constexpr uint64_t DEVICE_TAG = uint64_t(1) << 62;
constexpr unsigned char POISON = 0xa5;
// Alignment of a device's addresses.
constexpr size_t ALIGNMENT = 512;

struct Allocation {
    // With the tag, for device memory.
    uint64_t address;
    unsigned char* memory;
    size_t nbytes;
    Context* context;
    // Pool of memory allocated in a stream.
    Pool* pool;
    bool is_pinned;
    // Whether the stream has executed the allocation.
    bool is_there;
    // Whether a free was requested.
    bool is_leaving = false;

    ~Allocation();

    // Creates and counts an allocation. `CUDA_ERROR_OUT_OF_MEMORY` beyond the device's memory, after waiting for
    // pending frees.
    static std::shared_ptr<Allocation> make(Lock& held, Context& context, size_t nbytes, Pool* pool, bool is_pinned);
    // Returns the allocation that contains an address, or null.
    static std::shared_ptr<Allocation> find(const Lock&, uint64_t address);
    // Returns the allocation that begins at an address, unless a free was requested.
    static std::shared_ptr<Allocation> beginning(const Lock&, uint64_t address);
    // Fills the allocation with poison, and removes it.
    static void free(const Lock&, const std::shared_ptr<Allocation>& allocation);
    // Frees all allocations of a context.
    static void free_all(const Lock&, Context& context);
    // Returns the live bytes of a context, without pinned ones.
    static uint64_t live_nbytes(const Lock&, const Context& context);

    // Marks the allocation as live.
    void arrive();
};

// Host memory of an allocation, for accesses from a context: `CUDA_ERROR_ILLEGAL_ADDRESS` unless the accessed range
// is live and inside one allocation of the context or pinned memory.
struct Window {
    uint64_t begin = 0;
    uint64_t end = 0;
    unsigned char* memory = nullptr;
    // Value of `generation` at the lookup.
    uint64_t generation = 0;

    static Window of(const Lock&, const Context& context, uint64_t address, size_t nbytes);

    bool has(uint64_t address, size_t nbytes) const {
        return address >= begin && nbytes <= end - begin && address - begin <= end - begin - nbytes;
    }
};

// Changes with every allocation and free, to invalidate windows.
extern std::atomic<uint64_t> generation;

}  // namespace software_device
