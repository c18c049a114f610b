// The driver's lock and global state.
//
// The driver is a `libcuda.so.1` in software: its devices use host memory, and run the project's own kernels as
// C++. It is as asynchronous as CUDA, and stricter. The environment configures it:
//
//   ZARROW_SOFTWARE_DEVICES          number of devices; 2
//   ZARROW_SOFTWARE_DEVICE_MEMORY    bytes of memory per device; 4 GiB
//   ZARROW_SOFTWARE_DEVICE_SEED      seed of random delays of operations; 1, and 0 for no delays
//   ZARROW_SOFTWARE_DEVICE_FAIL      calls that fail (`failure.h`)
//
// One lock guards every table, queue and signal, and one condition variable reports every change. That is slow and
// simple: the purpose of this driver is to find faults. The lock is not held while bytes are copied or a kernel
// runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "abi.h"

namespace software_device {

// Error code thrown by a call.
struct Error {
    CUresult code;
};

[[noreturn]] inline void fail(CUresult code) { throw Error{code}; }

inline void require(bool holds, CUresult code) {
    if (!holds) fail(code);
}

struct Driver {
    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<bool> is_initialized = false;

    // Returns the only driver. It is never destroyed: its threads run until the process ends.
    static Driver& get();
    // Returns whether this process is a fork of the driver's process: then every call fails, as in CUDA.
    static bool is_forked();
    // Reads a number from the environment.
    static uint64_t setting(const char* name, uint64_t otherwise);
};

using Lock = std::unique_lock<std::mutex>;

inline Lock lock() { return Lock(Driver::get().mutex); }

}  // namespace software_device
