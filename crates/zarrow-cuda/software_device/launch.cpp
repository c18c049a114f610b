// Launches: run a kernel for each thread of a grid.

#include "call.h"
#include "counters.h"
#include "kernel.h"
#include "module.h"
#include "stream.h"

namespace software_device {

namespace {

struct Shape {
    unsigned x, y, z;
};

void run(const Context& context, const std::function<void()>& kernel, Shape grid, Shape block) {
    kernel_thread = {&context, {}, {}, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}};
    auto& [b0, b1, b2] = kernel_thread.block;
    auto& [t0, t1, t2] = kernel_thread.thread;
    for (b2 = 0; b2 < grid.z; b2++) {
        for (b1 = 0; b1 < grid.y; b1++) {
            for (b0 = 0; b0 < grid.x; b0++) {
                for (t2 = 0; t2 < block.z; t2++) {
                    for (t1 = 0; t1 < block.y; t1++) {
                        for (t0 = 0; t0 < block.x; t0++) kernel();
                    }
                }
            }
        }
    }
}

}  // namespace

}  // namespace software_device

using namespace software_device;

CUDA_API cuLaunchKernel(
    void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared_nbytes, void* stream_handle, void** parameters, void** extra) {
    return call_in_context("cuLaunchKernel", [&](Context& context) {
        const Shape grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
        require(grid.x > 0 && grid.y > 0 && grid.z > 0, CUDA_ERROR_INVALID_VALUE);
        require(grid.x <= 2147483647 && grid.y <= 65535 && grid.z <= 65535, CUDA_ERROR_INVALID_VALUE);
        require(block.x > 0 && block.y > 0 && block.z > 0 && block.z <= 64, CUDA_ERROR_INVALID_VALUE);
        require(block.x <= 1024 && block.y <= 1024, CUDA_ERROR_INVALID_VALUE);
        require(block.x * block.y * block.z <= 1024, CUDA_ERROR_INVALID_VALUE);
        require(!extra && shared_nbytes <= 48 << 10, CUDA_ERROR_NOT_SUPPORTED);
        auto held = lock();
        const Function& function = Module::function(held, handle);
        require(function.context == &context, CUDA_ERROR_INVALID_HANDLE);
        const auto stream = Stream::of(held, context, stream_handle);
        require(parameters || function.kernel->parameter_nbytes.empty(), CUDA_ERROR_INVALID_VALUE);
        counters[LAUNCHES]++;
        Stream::submit(held, stream, [&context, kernel = function.kernel->bind(parameters), grid, block] {
            run(context, kernel, grid, block);
        });
    });
}

// Launches a kernel of another library, such as the software nvCOMP: calls `run` when the stream executes it, then
// `drop`. The result of `run` becomes the state of the context.
CUDA_API zarrow_device_launch(void* stream, CUresult (*run)(void*), void (*drop)(void*), void* data) {
    const std::shared_ptr<void> held_data(data, drop);
    return call_in_context("zarrow_device_launch", [&](Context& context) {
        auto held = lock();
        counters[LAUNCHES]++;
        Stream::submit(held, Stream::of(held, context, stream), [&context, run, held_data] {
            kernel_thread = {&context, {}, {}, {1, 1, 1}, {1, 1, 1}};
            if (const CUresult code = run(held_data.get()); code != CUDA_SUCCESS) fail(code);
        });
    });
}

// Returns the host memory that such a kernel accesses.
CUDA_API zarrow_device_reach(uint64_t address, size_t nbytes, size_t alignment, void** memory) {
    try {
        *memory = reach(address, nbytes, alignment);
        return CUDA_SUCCESS;
    } catch (const Error& error) {
        return error.code;
    }
}
