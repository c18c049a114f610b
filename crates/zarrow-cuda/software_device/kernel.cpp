// The kernels, compiled as C++ from the same files that NVRTC compiles.

#include "kernel.h"

#include <tuple>
#include <utility>

#include "allocation.h"
#include "context.h"

#include "../kernels/zarrow.cu"

namespace software_device {

thread_local KernelThread kernel_thread;

void* reach(uint64_t address, size_t nbytes, size_t alignment) {
    require(address % alignment == 0, CUDA_ERROR_MISALIGNED_ADDRESS);
    // A kernel has few buffers: their lookups stay valid until an allocation or a free.
    static thread_local Window windows[4];
    static thread_local const Context* context = nullptr;
    static thread_local unsigned next = 0;
    const uint64_t now = generation.load(std::memory_order_acquire);
    if (context == kernel_thread.context) {
        for (const Window& window : windows) {
            if (window.generation != now || !window.has(address, nbytes)) continue;
            return window.memory + (address - window.begin);
        }
    }
    auto held = lock();
    if (context != kernel_thread.context) {
        for (Window& window : windows) window = {};
        context = kernel_thread.context;
    }
    Window& window = windows[next++ % 4];
    window = Window::of(held, *context, address, nbytes);
    return window.memory + (address - window.begin);
}

namespace {

template <class... Parameters, size_t... Numbers>
Kernel make(const char* name, void (*function)(Parameters...), std::index_sequence<Numbers...>) {
    return {name, {sizeof(Parameters)...}, [=](void** given) -> std::function<void()> {
                const std::tuple<Parameters...> parameters(*static_cast<const Parameters*>(given[Numbers])...);
                return [=] { std::apply(function, parameters); };
            }};
}

template <class... Parameters>
Kernel make(const char* name, void (*function)(Parameters...)) {
    return make(name, function, std::index_sequence_for<Parameters...>());
}

#define NAMED(kernel) make(#kernel, kernel)
#define FOR_EACH_SIZE(kernel) \
    NAMED(kernel##_1), NAMED(kernel##_2), NAMED(kernel##_4), NAMED(kernel##_8), NAMED(kernel##_16)

}  // namespace

const Kernel* Kernel::find(const std::string& name) {
    static const std::vector<Kernel>* kernels = new std::vector<Kernel>{
        FOR_EACH_SIZE(zarrow_place), FOR_EACH_SIZE(zarrow_copy), FOR_EACH_SIZE(zarrow_gather),
        NAMED(zarrow_cast),          NAMED(zarrow_differs),      NAMED(zarrow_equal),
        NAMED(zarrow_nonzero),       NAMED(zarrow_checksum_lanes), NAMED(zarrow_checksum_parts),
        NAMED(zarrow_checksum_verify),
    };
    for (const Kernel& kernel : *kernels) {
        if (kernel.name == name) return &kernel;
    }
    return nullptr;
}

}  // namespace software_device
