// The compiled-in kernels, and memory accesses of their threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace software_device {

struct Context;

// Thread of a grid that this host thread currently runs.
struct KernelThread {
    const Context* context;
    unsigned block[3];
    unsigned thread[3];
    unsigned grid_shape[3];
    unsigned block_shape[3];
};
extern thread_local KernelThread kernel_thread;

// Returns the memory of a kernel's access. Throws CUDA_ERROR_ILLEGAL_ADDRESS and CUDA_ERROR_MISALIGNED_ADDRESS.
void* reach(uint64_t address, size_t nbytes, size_t alignment);

struct Kernel {
    std::string name;
    // Bytes of each parameter.
    std::vector<size_t> parameter_nbytes;
    // Reads the parameters, and returns the work of one thread.
    std::function<std::function<void()>(void** parameters)> bind;

    // Returns the kernel with this name, or null.
    static const Kernel* find(const std::string& name);
};

}  // namespace software_device
