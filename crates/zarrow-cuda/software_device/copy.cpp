// Copies and fills.
//
// 1. From pageable host memory, bytes are taken during the call, and arrive on the device when the stream executes
//    the copy.
// 2. From pinned memory they are taken when the stream executes the copy: earlier changes by the host arrive too.
// 3. To pageable host memory, the call waits for the bytes; to pinned memory, it does not wait.
// 4. When the stream executes the copy, every byte on the device must be in a live allocation (`Window::of`).

#include <cstring>
#include <vector>

#include "allocation.h"
#include "call.h"
#include "counters.h"
#include "stream.h"

namespace software_device {

namespace {

// One side of a copy of rows.
struct Place {
    enum Kind { DEVICE, PINNED, PAGEABLE } kind;
    uint64_t address;
    size_t pitch;
    // Context of a device address.
    const Context* context;

    // Returns the bytes from the start of the first row to the end of the last row.
    size_t nbytes(size_t width, size_t height) const { return (height - 1) * pitch + width; }
};

// Returns a place on the host: pinned if the driver allocated it.
Place host(const Lock& held, const Context& context, const void* memory, size_t pitch, size_t width, size_t height) {
    const uint64_t address = uint64_t(uintptr_t(memory));
    require(address != 0 && !(address & DEVICE_TAG), CUDA_ERROR_INVALID_VALUE);
    const auto allocation = Allocation::find(held, address);
    Place place = {allocation ? Place::PINNED : Place::PAGEABLE, address, pitch, &context};
    if (allocation) {
        const size_t rest = allocation->nbytes - (address - allocation->address);
        require(place.nbytes(width, height) <= rest, CUDA_ERROR_INVALID_VALUE);
    }
    return place;
}

Place device(const Context& context, CUdeviceptr address, size_t pitch) {
    return {Place::DEVICE, address, pitch, &context};
}

// Returns the current memory of a place.
unsigned char* memory(const Lock& held, const Place& place, size_t nbytes) {
    if (place.kind == Place::PAGEABLE) return reinterpret_cast<unsigned char*>(uintptr_t(place.address));
    const Window window = Window::of(held, *place.context, place.address, nbytes);
    return window.memory + (place.address - window.begin);
}

void copy_rows(
    unsigned char* to, size_t to_pitch, const unsigned char* from, size_t from_pitch, size_t width, size_t height) {
    for (size_t row = 0; row < height; row++) std::memmove(to + row * to_pitch, from + row * from_pitch, width);
}

void count(const Place& to, const Place& from, size_t nbytes) {
    if (to.kind != Place::DEVICE) {
        counters[DEVICE_TO_HOST] += nbytes;
    } else if (from.kind == Place::DEVICE) {
        counters[DEVICE_TO_DEVICE] += nbytes;
    } else {
        counters[from.kind == Place::PINNED ? HOST_TO_DEVICE_PINNED : HOST_TO_DEVICE_PAGEABLE] += nbytes;
    }
}

void copy(Lock& held, Context& context, void* handle, Place to, Place from, size_t width, size_t height) {
    const auto stream = Stream::of(held, context, handle);
    if (width == 0 || height == 0) return;
    count(to, from, width * height);
    std::vector<unsigned char> staged;
    if (from.kind == Place::PAGEABLE) {
        staged.resize(width * height);
        const auto* source = reinterpret_cast<const unsigned char*>(uintptr_t(from.address));
        copy_rows(staged.data(), width, source, from.pitch, width, height);
        from.pitch = width;
    }
    const SignalPtr done = Stream::submit(held, stream, [=, staged = std::move(staged)] {
        auto held = lock();
        unsigned char* target = memory(held, to, to.nbytes(width, height));
        const unsigned char* source =
            staged.empty() ? memory(held, from, from.nbytes(width, height)) : staged.data();
        held.unlock();
        copy_rows(target, to.pitch, source, from.pitch, width, height);
    });
    if (to.kind == Place::PAGEABLE) {
        wait(held, {done});
        context.check();
    }
}

// Returns a side of a two-dimensional copy.
Place side(
    const Lock& held, const Context& context, CUmemorytype type, const void* memory, CUdeviceptr address, size_t x,
    size_t y, size_t pitch, size_t width, size_t height) {
    const size_t step = pitch ? pitch : width;
    require(x + width <= step || height <= 1, CUDA_ERROR_INVALID_VALUE);
    const size_t offset = y * step + x;
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            require(memory, CUDA_ERROR_INVALID_VALUE);
            return host(held, context, static_cast<const char*>(memory) + offset, step, width, height);
        case CU_MEMORYTYPE_DEVICE: return device(context, address + offset, step);
        default: fail(CUDA_ERROR_NOT_SUPPORTED);
    }
}

}  // namespace

}  // namespace software_device

using namespace software_device;

CUDA_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t nbytes, void* stream) {
    return call_in_context("cuMemcpyHtoDAsync_v2", [&](Context& context) {
        if (nbytes == 0) return;
        auto held = lock();
        const Place source = host(held, context, from, nbytes, nbytes, 1);
        copy(held, context, stream, device(context, to, nbytes), source, nbytes, 1);
    });
}

CUDA_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t nbytes, void* stream) {
    return call_in_context("cuMemcpyDtoHAsync_v2", [&](Context& context) {
        if (nbytes == 0) return;
        auto held = lock();
        const Place target = host(held, context, to, nbytes, nbytes, 1);
        copy(held, context, stream, target, device(context, from, nbytes), nbytes, 1);
    });
}

CUDA_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t nbytes, void* stream) {
    return call_in_context("cuMemcpyDtoDAsync_v2", [&](Context& context) {
        auto held = lock();
        copy(held, context, stream, device(context, to, nbytes), device(context, from, nbytes), nbytes, 1);
    });
}

CUDA_API cuMemcpyPeerAsync(
    CUdeviceptr to, void* to_context, CUdeviceptr from, void* from_context, size_t nbytes, void* stream) {
    return call_in_context("cuMemcpyPeerAsync", [&](Context& context) {
        auto held = lock();
        const Place target = device(Context::of(to_context), to, nbytes);
        copy(held, context, stream, target, device(Context::of(from_context), from, nbytes), nbytes, 1);
    });
}

CUDA_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* rows, void* stream) {
    return call_in_context("cuMemcpy2DAsync_v2", [&](Context& context) {
        require(rows, CUDA_ERROR_INVALID_VALUE);
        const auto [width, height] = std::pair(rows->WidthInBytes, rows->Height);
        if (width == 0 || height == 0) return;
        auto held = lock();
        const Place from = side(
            held, context, rows->srcMemoryType, rows->srcHost, rows->srcDevice, rows->srcXInBytes, rows->srcY,
            rows->srcPitch, width, height);
        const Place to = side(
            held, context, rows->dstMemoryType, rows->dstHost, rows->dstDevice, rows->dstXInBytes, rows->dstY,
            rows->dstPitch, width, height);
        require(from.kind == Place::DEVICE || to.kind == Place::DEVICE, CUDA_ERROR_NOT_SUPPORTED);
        copy(held, context, stream, to, from, width, height);
    });
}

CUDA_API cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t nbytes, void* handle) {
    return call_in_context("cuMemsetD8Async", [&](Context& context) {
        auto held = lock();
        const auto stream = Stream::of(held, context, handle);
        if (nbytes == 0) return;
        Stream::submit(held, stream, [&context, address, value, nbytes] {
            auto held = lock();
            unsigned char* target = memory(held, device(context, address, nbytes), nbytes);
            held.unlock();
            std::memset(target, value, nbytes);
        });
    });
}
