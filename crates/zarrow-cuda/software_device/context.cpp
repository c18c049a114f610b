// Primary contexts.

#include "context.h"

#include "allocation.h"
#include "call.h"
#include "counters.h"
#include "device.h"
#include "event.h"
#include "module.h"
#include "pool.h"
#include "stream.h"

namespace software_device {

static thread_local std::vector<Context*> stack;

const std::vector<Context*>& Context::all() {
    static const auto* contexts = [] {
        auto* made = new std::vector<Context*>;
        for (CUdevice device = 0; device < device_count(); device++) made->push_back(new Context(device));
        return made;
    }();
    return *contexts;
}

Context& Context::of(void* handle) {
    for (Context* context : all()) {
        if (context == handle) return *context;
    }
    fail(CUDA_ERROR_INVALID_CONTEXT);
}

Context& Context::current() {
    require(!stack.empty() && stack.back(), CUDA_ERROR_INVALID_CONTEXT);
    return *stack.back();
}

void Context::fail_current(CUresult code) {
    if (!stack.empty() && stack.back()) stack.back()->set_failed(code);
}

std::shared_ptr<Stream> Context::default_stream(const Lock&, void* handle) {
    const bool is_own = uintptr_t(handle) == CU_STREAM_PER_THREAD;
    auto& stream = is_own ? per_thread[std::this_thread::get_id()] : legacy;
    if (!stream) {
        stream = std::make_shared<Stream>(*this, 0, !is_own);
        streams.push_back(stream);
    }
    return stream;
}

void Context::close(const Lock&, const std::shared_ptr<Stream>& stream) {
    // The stream stays in the table until its work is done, since the legacy stream waits for it.
    stream->is_closed = true;
    std::erase_if(streams, [](const auto& other) { return other->is_closed && other->last->is_done; });
    counters[LIVE_STREAMS]--;
    Driver::get().changed.notify_all();
}

void Context::synchronize(Lock& held) {
    std::vector<SignalPtr> signals;
    for (const auto& stream : streams) signals.push_back(stream->last);
    wait(held, signals);
    synchronized(held);
}

void Context::synchronized(const Lock& held) { Pool::trim_all(held, *this); }

void Context::check() const {
    require(holders > 0, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    require(error == CUDA_SUCCESS, error);
}

void Context::set_failed(CUresult code) {
    CUresult none = CUDA_SUCCESS;
    error.compare_exchange_strong(none, code);
}

void release(Lock& held, Context& context) {
    require(context.holders > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--context.holders > 0) return;
    context.synchronize(held);
    for (const auto& stream : context.streams) {
        if (stream != context.legacy && !stream->is_closed) {
            bool is_handle = true;
            for (const auto& [thread, own] : context.per_thread) is_handle &= own != stream;
            counters[LIVE_STREAMS] -= is_handle;
        }
        stream->is_closed = true;
    }
    Driver::get().changed.notify_all();
    context.streams.clear();
    context.per_thread.clear();
    context.legacy = nullptr;
    counters[LIVE_EVENTS] -= context.events.size();
    context.events.clear();
    Allocation::free_all(held, context);
    Pool::remove_all(held, context);
    Module::remove_all(held, context);
    context.error = CUDA_SUCCESS;
}

}  // namespace software_device

using namespace software_device;

CUDA_API cuDevicePrimaryCtxRetain(void** handle, CUdevice device) {
    return call("cuDevicePrimaryCtxRetain", [&] {
        require(handle, CUDA_ERROR_INVALID_VALUE);
        check_device(device);
        auto held = lock();
        Context& context = *Context::all()[size_t(device)];
        context.holders++;
        *handle = &context;
    });
}

CUDA_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    return call("cuDevicePrimaryCtxRelease_v2", [&] {
        check_device(device);
        auto held = lock();
        release(held, *Context::all()[size_t(device)]);
    });
}

CUDA_API cuCtxPushCurrent_v2(void* handle) {
    return call("cuCtxPushCurrent_v2", [&] {
        Context& context = Context::of(handle);
        require(context.holders > 0, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        stack.push_back(&context);
    });
}

CUDA_API cuCtxPopCurrent_v2(void** handle) {
    return call("cuCtxPopCurrent_v2", [&] {
        require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
        if (handle) *handle = stack.back();
        stack.pop_back();
    });
}

CUDA_API cuCtxGetCurrent(void** handle) {
    return call("cuCtxGetCurrent", [&] {
        require(handle, CUDA_ERROR_INVALID_VALUE);
        *handle = stack.empty() ? nullptr : stack.back();
    });
}

// Replaces the top of the stack. A null handle removes it.
CUDA_API cuCtxSetCurrent(void* handle) {
    return call("cuCtxSetCurrent", [&] {
        Context* context = handle ? &Context::of(handle) : nullptr;
        require(!context || context->holders > 0, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        if (!stack.empty()) stack.pop_back();
        if (context) stack.push_back(context);
    });
}

CUDA_API cuCtxGetDevice(CUdevice* device) {
    return call("cuCtxGetDevice", [&] {
        require(device, CUDA_ERROR_INVALID_VALUE);
        *device = Context::current().device;
    });
}

CUDA_API cuCtxSynchronize() {
    return call_in_context("cuCtxSynchronize", [&](Context& context) {
        auto held = lock();
        context.synchronize(held);
        context.check();
    });
}
