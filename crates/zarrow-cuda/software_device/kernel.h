// Kernels that are compiled in, and how a thread of one reaches memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace software_device {

struct Context;

// The thread of a grid that runs now on this thread of the host.
struct KernelThread {
    const Context* context;
    unsigned block[3];
    unsigned thread[3];
    unsigned grid_shape[3];
    unsigned block_shape[3];
};
extern thread_local KernelThread kernel_thread;

// Where an access of a kernel goes. It throws CUDA_ERROR_ILLEGAL_ADDRESS and CUDA_ERROR_MISALIGNED_ADDRESS.
void* reach(uint64_t address, size_t nbytes, size_t alignment);

struct Kernel {
    std::string name;
    // Bytes of each parameter.
    std::vector<size_t> parameter_nbytes;
    // Takes the parameters now, and gives what one thread does.
    std::function<std::function<void()>(void** parameters)> bind;

    // The kernel of a name, or null.
    static const Kernel* find(const std::string& name);
};

}  // namespace software_device
