// What all of the driver shares: its lock, and whether it may be used at all.
//
// The whole is a `libcuda.so.1` in software: devices whose memory is the host's, on which the project's own kernels run
// as C++. It is as asynchronous as CUDA, and stricter. The environment says what it is like:
//
//   ZARROW_SOFTWARE_DEVICES          how many devices there are; 2
//   ZARROW_SOFTWARE_DEVICE_MEMORY    bytes of memory of each; 4 GiB
//   ZARROW_SOFTWARE_DEVICE_SEED      which operations are late, and how much; 1, and 0 for none
//   ZARROW_SOFTWARE_DEVICE_FAIL      which calls fail (`failure.h`)
//
// One lock guards every table, queue and signal, and one condition tells of every change. That is slow and simple: this
// driver is there to find faults. Nothing holds the lock while it copies bytes or runs a kernel.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "abi.h"

namespace software_device {

// What a call returns instead of its result.
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

    // The one driver, which is never destroyed: its threads run until the process ends.
    static Driver& get();
    // Whether this process is a fork of the one that has the driver: nothing works here any more, as in CUDA.
    static bool is_forked();
    // A number of the environment.
    static uint64_t setting(const char* name, uint64_t otherwise);
};

using Lock = std::unique_lock<std::mutex>;

inline Lock lock() { return Lock(Driver::get().mutex); }

}  // namespace software_device
