// Allocation and freeing, immediate and in streams, and attributes of pointers.

#include <cstring>

#include "allocation.h"
#include "call.h"
#include "device.h"
#include "pool.h"
#include "stream.h"

namespace software_device {

namespace {

// 1. The address is known at once.
// 2. The memory exists when the stream executes this operation.
void allocate_in_stream(CUdeviceptr* address, size_t nbytes, Pool& pool, void* handle, Context& context) {
    auto held = lock();
    const auto stream = Stream::of(held, context, handle);
    const auto allocation = Allocation::make(held, context, nbytes, &pool, false);
    Stream::submit(held, stream, [allocation] {
        auto held = lock();
        // It may have been freed by `cuMemFree` by now.
        if (Allocation::find(held, allocation->address) == allocation) allocation->arrive();
    });
    *address = allocation->address;
}

// Writes an attribute of an address. Returns false if the address lacks it.
bool write_attribute(CUpointer_attribute attribute, const Allocation& allocation, void* value) {
    const auto write = [&](auto number) {
        std::memcpy(value, &number, sizeof(number));
        return true;
    };
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT: return write(allocation.context);
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return write(allocation.is_pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return write(allocation.address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return write(allocation.is_pinned ? allocation.memory : nullptr) && allocation.is_pinned;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: return write(0U);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return write(allocation.context->device);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return write(allocation.address);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return write(allocation.nbytes);
    }
    fail(CUDA_ERROR_NOT_SUPPORTED);
}

size_t attribute_nbytes(CUpointer_attribute attribute) {
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return 4;
        default: return 8;
    }
}

}  // namespace

}  // namespace software_device

using namespace software_device;

CUDA_API cuMemAlloc_v2(CUdeviceptr* address, size_t nbytes) {
    return call_in_context("cuMemAlloc_v2", [&](Context& context) {
        require(address, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const auto allocation = Allocation::make(held, context, nbytes, nullptr, false);
        allocation->arrive();
        *address = allocation->address;
    });
}

// Waits for the context's work, except for memory allocated in a stream: then the caller must wait.
CUDA_API cuMemFree_v2(CUdeviceptr address) {
    return call_in_context("cuMemFree_v2", [&](Context& context) {
        if (address == 0) return;
        auto held = lock();
        const auto allocation = Allocation::beginning(held, address);
        require(!allocation->is_pinned, CUDA_ERROR_INVALID_VALUE);
        allocation->is_leaving = true;
        if (!allocation->pool) context.synchronize(held);
        Allocation::free(held, allocation);
    });
}

CUDA_API cuMemAllocAsync(CUdeviceptr* address, size_t nbytes, void* stream) {
    return call_in_context("cuMemAllocAsync", [&](Context& context) {
        require(address, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        Pool& pool = Pool::usual(held, context.device);
        held.unlock();
        allocate_in_stream(address, nbytes, pool, stream, context);
    });
}

CUDA_API cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t nbytes, void* handle, void* stream) {
    return call_in_context("cuMemAllocFromPoolAsync", [&](Context& context) {
        require(address, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        Pool& pool = Pool::of(held, handle);
        held.unlock();
        require(pool.device == context.device, CUDA_ERROR_INVALID_VALUE);
        allocate_in_stream(address, nbytes, pool, stream, context);
    });
}

CUDA_API cuMemFreeAsync(CUdeviceptr address, void* handle) {
    return call_in_context("cuMemFreeAsync", [&](Context& context) {
        auto held = lock();
        const auto stream = Stream::of(held, context, handle);
        const auto allocation = Allocation::beginning(held, address);
        require(!allocation->is_pinned, CUDA_ERROR_INVALID_VALUE);
        allocation->is_leaving = true;
        Stream::submit(held, stream, [allocation] {
            auto held = lock();
            // It cannot be freed before its stream has allocated it.
            require(allocation->is_there, CUDA_ERROR_ILLEGAL_ADDRESS);
            Allocation::free(held, allocation);
        });
    });
}

CUDA_API cuMemHostAlloc(void** memory, size_t nbytes, unsigned flags) {
    return call_in_context("cuMemHostAlloc", [&](Context& context) {
        // Portable, mapped, write-combined.
        require(memory && flags < 8, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const auto allocation = Allocation::make(held, context, nbytes, nullptr, true);
        allocation->arrive();
        *memory = allocation->memory;
    });
}

// Immediate: a pending copy loses its memory.
CUDA_API cuMemFreeHost(void* memory) {
    return call_in_context("cuMemFreeHost", [&](Context&) {
        auto held = lock();
        const auto allocation = Allocation::beginning(held, uint64_t(uintptr_t(memory)));
        require(allocation->is_pinned, CUDA_ERROR_INVALID_VALUE);
        Allocation::free(held, allocation);
    });
}

CUDA_API cuMemGetInfo_v2(size_t* free, size_t* total) {
    return call_in_context("cuMemGetInfo_v2", [&](Context& context) {
        require(free && total, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const uint64_t taken = Allocation::live_nbytes(held, context) + Pool::kept_nbytes(held, context);
        *total = device_memory();
        *free = taken < *total ? *total - taken : 0;
    });
}

// Fails for an address not allocated by the driver.
CUDA_API cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    return call("cuPointerGetAttribute", [&] {
        require(value, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const auto allocation = Allocation::find(held, address);
        require(allocation && !allocation->is_leaving, CUDA_ERROR_INVALID_VALUE);
        require(write_attribute(attribute, *allocation, value), CUDA_ERROR_INVALID_VALUE);
    });
}

// Returns zeros for an address not allocated by the driver.
CUDA_API cuPointerGetAttributes(
    unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address) {
    return call("cuPointerGetAttributes", [&] {
        require(attributes && values, CUDA_ERROR_INVALID_VALUE);
        auto held = lock();
        const auto allocation = Allocation::find(held, address);
        for (unsigned number = 0; number < count; number++) {
            std::memset(values[number], 0, attribute_nbytes(attributes[number]));
            if (allocation && !allocation->is_leaving) write_attribute(attributes[number], *allocation, values[number]);
        }
    });
}
