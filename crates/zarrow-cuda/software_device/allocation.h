// Memory that the driver gave: who may reach it, and when.
//
// - Addresses of a device have a tag, bit 62: no address of the host has it, so that a host which follows one faults.
// - Memory that comes or goes in a stream is there from the one operation to the other: before and behind them, an
//   access is illegal, also where the address was known all the time.
// - New memory and memory that goes are filled with POISON. Memory that went is kept a while, so that its address
//   does not come back at once.
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
// What a device's addresses are multiples of.
constexpr size_t ALIGNMENT = 512;

struct Allocation {
    // With the tag, where it is the device's.
    uint64_t address;
    unsigned char* memory;
    size_t nbytes;
    Context* context;
    // The pool of memory that came in a stream.
    Pool* pool;
    bool is_pinned;
    // Whether the stream has come to the operation that makes it.
    bool is_there;
    // Whether somebody has asked to free it.
    bool is_leaving = false;

    ~Allocation();

    // Makes one, and counts it. `CUDA_ERROR_OUT_OF_MEMORY` beyond the device's memory, after waiting for what is being
    // freed.
    static std::shared_ptr<Allocation> make(Lock& held, Context& context, size_t nbytes, Pool* pool, bool is_pinned);
    // The one that an address lies in, or none.
    static std::shared_ptr<Allocation> find(const Lock&, uint64_t address);
    // The one that begins at an address and that nobody has asked to free.
    static std::shared_ptr<Allocation> beginning(const Lock&, uint64_t address);
    // Fills it with poison, and forgets it.
    static void free(const Lock&, const std::shared_ptr<Allocation>& allocation);
    // Frees all of a context.
    static void free_all(const Lock&, Context& context);
    // Bytes of a context that are there, without pinned ones.
    static uint64_t live_nbytes(const Lock&, const Context& context);

    // From now on it is there.
    void arrive();
};

// Where an allocation's memory stands on the host, for an access from a context: `CUDA_ERROR_ILLEGAL_ADDRESS` unless
// it is there, all of it in one allocation of the context or in pinned memory.
struct Window {
    uint64_t begin = 0;
    uint64_t end = 0;
    unsigned char* memory = nullptr;
    // What `generation` was.
    uint64_t generation = 0;

    static Window of(const Lock&, const Context& context, uint64_t address, size_t nbytes);

    bool has(uint64_t address, size_t nbytes) const {
        return address >= begin && nbytes <= end - begin && address - begin <= end - begin - nbytes;
    }
};

// Changes with every allocation that comes or goes, so that a window knows whether it may still be looked through.
extern std::atomic<uint64_t> generation;

}  // namespace software_device
